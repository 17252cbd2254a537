from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.registry import Registry, container_name
from isulad_py.host.tasks import TaskOwner
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord, ImageSpec, Mount
from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.image import Credentials
from tests.fakes.clock import FakeClock
from tests.fakes.images import FakeImageSource
from tests.fakes.records import MemoryRecords
from tests.fakes.storage import MemoryLayers, MemoryRootFilesystems


class Node:
    def __init__(self, tasks: TaskOwner, records: MemoryRecords | None = None) -> None:
        self.records = records or MemoryRecords()
        self.registry = Registry(records=self.records)
        self.layers = MemoryLayers()
        self.source = FakeImageSource(self.layers)
        self.images = Images(
            records=self.records,
            registry=self.registry,
            source=self.source,
            layers=self.layers,
            rootfs=MemoryRootFilesystems(self.layers),
            tasks=tasks,
            clock=FakeClock(),
            handlers=Handlers(names=["runc"], default="runc"),
            sandbox_image="registry.k8s.io/pause:3.9",
        )

    async def pull(self, name: str, credentials: Credentials | None = None):
        return await self.images.pull(ImageSpec(image=name), credentials)


@pytest.fixture
async def tasks():
    owner = TaskOwner(on_failure=lambda *_: None)
    yield owner
    await owner.close()


@pytest.fixture
def node(tasks) -> Node:
    return Node(tasks)


async def test_an_image_is_found_by_every_name_it_has(node: Node) -> None:
    node.source.offer("busybox:1")
    image = await node.pull("busybox:1")
    for name in (
        "busybox:1",
        "docker.io/library/busybox:1",
        image.repo_digests[0],
        image.id,
        image.id.removeprefix("sha256:"),
        image.id.removeprefix("sha256:")[:12],
    ):
        assert node.images.status(name) == image, name
    assert node.images.status("busybox:2") is None
    assert node.images.status("sha256:" + "0" * 64) is None
    assert node.images.status("0" * 64) is None
    with pytest.raises(InvalidInput, match=r"image\.image"):
        node.images.status("busybox:bad tag")
    with pytest.raises(NotFound, match="busybox:2"):
        node.images.require("busybox:2")


async def test_names_of_one_image_add_up_and_survive_a_restart(node: Node, tasks) -> None:
    node.source.offer("busybox:1")
    node.source.offer("mirror.example/box:stable")
    await node.pull("busybox:1")
    await node.pull("mirror.example/box:stable")
    [image] = node.images.list()
    assert image.repo_tags == ("docker.io/library/busybox:1", "mirror.example/box:stable")
    again = Node(tasks, node.records)
    for layer in image.layers:
        again.layers.add(layer.chain_id)
    await again.images.load()
    assert again.images.list() == [image]


async def test_an_image_that_lacks_a_layer_is_pulled_again(node: Node, tasks) -> None:
    node.source.offer("busybox:1")
    image = await node.pull("busybox:1")
    again = Node(tasks, node.records)
    await again.images.load()
    assert again.images.status("busybox:1") is None
    again.source.offer("busybox:1")
    assert (await again.pull("busybox:1")).id == image.id
    assert again.images.status("busybox:1") is not None


async def test_a_tag_that_moves_leaves_the_former_image_by_digest(node: Node) -> None:
    node.source.offer("busybox:1")
    old = await node.pull("busybox:1")
    node.source.offer("busybox:1", content="new")
    new = await node.pull("busybox:1")
    assert new.id != old.id
    assert node.images.require("busybox:1").id == new.id
    assert node.images.require(old.id).repo_tags == ()
    assert node.images.require(old.repo_digests[0]).id == old.id


async def test_the_last_name_takes_the_image_and_its_own_layers(node: Node) -> None:
    node.source.offer("a:1", layers=("base", "a"))
    node.source.offer("a:2", layers=("base", "a"))
    node.source.offer("b:1", layers=("base", "b"))
    for name in ("a:1", "a:2", "b:1"):
        await node.pull(name)
    await node.images.remove("a:1")
    assert node.images.status("a:2") is not None
    assert len(await node.layers.present()) == 3
    await node.images.remove("a:2")
    assert node.images.status("a:2") is None
    assert len(await node.layers.present()) == 2
    await node.images.remove("a:2")


async def test_removal_by_id_takes_all_names(node: Node) -> None:
    node.source.offer("a:1")
    node.source.offer("a:2")
    image = await node.pull("a:1")
    await node.pull("a:2")
    await node.images.remove(image.id)
    assert node.images.list() == []
    assert await node.layers.present() == frozenset()


async def test_an_unknown_runtime_is_refused_before_anything_is_pulled(node: Node) -> None:
    node.source.offer("a:1")
    with pytest.raises(InvalidInput, match="runtime_handler: nobody is not configured"):
        await node.images.pull(ImageSpec(image="a:1", runtime_handler="nobody"), None)
    assert node.images.list() == []
    await node.images.pull(ImageSpec(image="a:1", runtime_handler="runc"), None)


async def test_an_image_in_use_stays(node: Node) -> None:
    node.source.offer("a:1")
    image = await node.pull("a:1")
    record = ContainerRecord(
        id=ContainerId("c1"),
        pod_id=PodId("p1"),
        config=ContainerConfig(metadata=ContainerMetadata(name="c")),
        image_id=image.id,
    )
    await node.registry.containers.add(record, name=container_name(record))
    with pytest.raises(FailedPrecondition, match="c1"):
        await node.images.remove("a:1")
    await node.registry.containers.forget("c1")
    await node.images.remove("a:1")


async def test_an_image_that_is_mounted_stays(node: Node) -> None:
    node.source.offer("a:1")
    image = await node.pull("a:1")
    volume = Mount(container_path="/v", readonly=True, image=ImageSpec(image="a:1", image_ref=image.id))
    record = ContainerRecord(
        id=ContainerId("c1"),
        pod_id=PodId("p1"),
        config=ContainerConfig(metadata=ContainerMetadata(name="c")),
        image_id="sha256:other",
        mounts=(volume,),
    )
    await node.registry.containers.add(record, name=container_name(record))
    with pytest.raises(FailedPrecondition, match="c1"):
        await node.images.remove("a:1")


async def test_pulls_of_one_image_are_one_and_a_pull_nobody_waits_for_ends(node: Node) -> None:
    node.source.offer("a:1")
    gate = node.source.faults.hold("fetch")
    pulls = [asyncio.get_running_loop().create_task(node.pull("a:1")) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await node.source.faults.wait_entered("fetch")
    for pull in pulls[:2]:
        pull.cancel()
    gate.set()
    assert (await pulls[2]).repo_tags
    assert len(node.source.pulls) == 1

    node.source.offer("b:1", content="b")
    node.source.faults.hold("fetch")
    lonely = asyncio.get_running_loop().create_task(node.pull("b:1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await node.source.faults.wait_entered("fetch")
    lonely.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lonely
    assert node.images.status("b:1") is None


async def test_other_credentials_are_another_pull(node: Node) -> None:
    node.source.offer("a:1")
    node.source.passwords["docker.io"] = Credentials(username="u", password="p")
    outcomes = await asyncio.gather(
        node.pull("a:1"), node.pull("a:1", Credentials(username="u", password="p")), return_exceptions=True
    )
    assert isinstance(outcomes[0], Exception)
    assert not isinstance(outcomes[1], BaseException)


async def test_layers_stay_while_a_pull_may_count_on_them(node: Node) -> None:
    node.source.offer("a:1")
    node.source.offer("b:1", content="b")
    await node.pull("a:1")
    gate = node.source.faults.hold("fetch")
    pull = asyncio.get_running_loop().create_task(node.pull("b:1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await node.source.faults.wait_entered("fetch")
    await node.images.remove("a:1")
    assert await node.layers.present()
    gate.set()
    image = await pull
    assert {layer.chain_id for layer in image.layers} <= await node.layers.present()


async def test_layers_that_had_to_stay_for_a_pull_go_later(node: Node) -> None:
    node.source.offer("a:1", layers=("own",))
    node.source.offer("b:1")
    await node.pull("a:1")
    gate = node.source.faults.hold("fetch")
    pull = asyncio.get_running_loop().create_task(node.pull("b:1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await node.source.faults.wait_entered("fetch")
    await node.images.remove("a:1")
    gate.set()
    image = await pull
    await node.images.collect_owed()
    assert await node.layers.present() == {layer.chain_id for layer in image.layers}


async def test_layers_of_an_image_whose_record_cannot_be_read_stay(node: Node, tasks) -> None:
    node.source.offer("a:1", layers=("own",))
    node.source.offer("b:1")
    lost = await node.pull("a:1")
    await node.pull("b:1")
    node.records.rows["image", lost.id] = b"{"
    again = Node(tasks, node.records)
    again.layers.sizes = node.layers.sizes
    await again.images.load()
    await again.images.remove("b:1")
    assert {layer.chain_id for layer in lost.layers} <= await again.layers.present()
    again.source.offer("a:1", layers=("own",))
    await again.pull("a:1")
    await again.images.collect_owed()
    assert await again.layers.present() == {layer.chain_id for layer in lost.layers}


async def test_the_sandbox_image_is_pinned(node: Node) -> None:
    node.source.offer("registry.k8s.io/pause:3.9")
    node.source.offer("a:1", content="other")
    await node.pull("registry.k8s.io/pause:3.9")
    await node.pull("a:1")
    pinned = {image.repo_tags[0]: image.pinned for image in node.images.list()}
    assert pinned == {"registry.k8s.io/pause:3.9": True, "docker.io/library/a:1": False}


async def test_an_unreadable_image_record_is_put_aside(node: Node) -> None:
    await node.records.put("image", "bad", b"{")
    await node.images.load()
    assert node.records.aside[0].key == "bad"
    assert replace(node.records.aside[0], at=0).kind == "image"
