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
from isulad_py.model.ids import ContainerId, ImageId, PodId
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
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


async def test_a_name_counts_before_the_beginning_of_an_id(node: Node) -> None:
    """Six hexadecimal digits can be both, and whoever makes images can choose them."""
    node.source.offer("busybox:1")
    image = await node.pull("busybox:1")
    short = image.id.removeprefix("sha256:")[:8]
    node.source.offer(short, content="other")
    named = await node.pull(short)
    assert named.id != image.id
    assert node.images.status(short) == named
    await node.images.remove(short)
    assert node.images.status(short) == image
    assert node.images.status(image.id) == image


async def test_an_image_whose_configuration_has_another_digest(node: Node) -> None:
    node.source.offer("busybox:1")
    image = await node.pull("busybox:1")
    long = replace(image, id=ImageId("sha512:" + "a" * 128), repo_tags=("docker.io/library/long:1",))
    await node.images.store(long)
    assert node.images.require(long.id).id == long.id
    assert node.images.require("long:1").id == long.id


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


async def restarted(node: Node, tasks, *, without: str = "") -> Node:
    again = Node(tasks, node.records)
    again.layers.sizes = {key: size for key, size in node.layers.sizes.items() if key != without}
    await again.images.load()
    return again


async def test_an_image_that_lacks_a_layer_is_not_shown_and_can_be_removed(node: Node, tasks) -> None:
    node.source.offer("a:1", layers=("base", "a"))
    node.source.offer("b:1", layers=("base", "b"))
    lost, other = await node.pull("a:1"), await node.pull("b:1")
    node = await restarted(node, tasks, without=lost.layers[1].chain_id)
    assert node.images.list() == [other]
    assert node.images.list("a:1") == []
    for name in ("a:1", lost.id, lost.id[7:19], lost.repo_digests[0]):
        assert node.images.status(name) is None
    await node.images.remove("a:1")
    assert ("image", lost.id) not in node.records.rows
    assert node.images.list() == [other]
    assert await node.layers.present() == {layer.chain_id for layer in other.layers}


async def test_an_image_that_lacks_a_layer_keeps_none(node: Node, tasks) -> None:
    node.source.offer("a:1", layers=("one", "two"))
    lost = await node.pull("a:1")
    node = await restarted(node, tasks, without=lost.layers[1].chain_id)
    await node.images.collect_layers()
    assert await node.layers.present() == frozenset()


async def test_a_tag_that_an_image_without_its_layers_had_goes_where_the_registry_says(node: Node, tasks) -> None:
    """Else the former image would take it back once its layers are here for another reason."""
    node.source.offer("a:1", layers=("one", "two"))
    node.source.offer("a:2", layers=("one", "two"))
    lost = await node.pull("a:1")
    await node.pull("a:2")
    node = await restarted(node, tasks, without=lost.layers[1].chain_id)
    node.source.offer("a:1", content="new", layers=("three",))
    new = await node.pull("a:1")
    for layer in lost.layers:
        node.layers.add(layer.chain_id)
    node = await restarted(node, tasks)
    assert node.images.require("a:1").id == new.id
    assert node.images.require("a:2").id == lost.id


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


@pytest.mark.parametrize("way", ["pull", "remove", "remove without sha256:"])
async def test_layers_of_an_image_whose_record_cannot_be_read_stay_until_it_is_seen_to(
    node: Node, tasks, way: str
) -> None:
    node.source.offer("a:1", layers=("own",))
    node.source.offer("b:1")
    lost = await node.pull("a:1")
    await node.pull("b:1")
    node.records.rows["image", lost.id] = b"{"
    again = await restarted(node, tasks)
    await again.images.remove("b:1")
    assert {layer.chain_id for layer in lost.layers} <= await again.layers.present()
    again = await restarted(again, tasks)
    await again.images.collect_layers()
    assert {layer.chain_id for layer in lost.layers} <= await again.layers.present()
    if way == "pull":
        again.source.offer("a:1", layers=("own",))
        await again.pull("a:1")
        await again.images.collect_owed()
        assert await again.layers.present() == {layer.chain_id for layer in lost.layers}
    else:
        await again.images.remove(lost.id if way == "remove" else lost.id.removeprefix("sha256:"))
        assert await again.layers.present() == frozenset()
    assert again.records.aside == []


async def test_what_was_put_aside_is_settled_also_by_a_pull_that_a_crash_cut_off(node: Node, tasks) -> None:
    node.source.offer("a:1")
    image = await node.pull("a:1")
    payload = node.records.rows["image", image.id]
    await node.records.quarantine("image", image.id, "unreadable")
    await node.records.put("image", image.id, payload)
    again = await restarted(node, tasks)
    assert again.records.aside == []
    await again.images.remove("a:1")
    assert await again.layers.present() == frozenset()


async def test_layers_that_a_pull_cut_off_brought_stay_while_they_are_young(node: Node, tasks) -> None:
    node.source.offer("a:1", layers=("own",))
    cut_off = await node.pull("a:1")
    node.records.rows.clear()
    again = await restarted(node, tasks)
    again.layers.recent = set(again.layers.sizes)
    await again.images.collect_layers()
    await again.images.collect_owed()
    assert await again.layers.present() == {layer.chain_id for layer in cut_off.layers}
    assert again.layers.expired == 1
    again.layers.recent = set()
    await again.images.collect_owed()
    assert await again.layers.present() == frozenset()


async def test_layers_of_an_image_that_is_removed_go_though_they_are_young(node: Node) -> None:
    node.source.offer("a:1", layers=("own",))
    node.source.offer("b:1", layers=("other",))
    await node.pull("a:1")
    cut_off = await node.pull("b:1")
    del node.images._images[cut_off.id]
    node.layers.recent = set(node.layers.sizes)
    await node.images.remove("a:1")
    assert await node.layers.present() == {layer.chain_id for layer in cut_off.layers}


async def test_a_change_that_is_cancelled_is_in_memory_as_on_disk(node: Node, tasks) -> None:
    node.source.offer("a:1")
    put, delete = node.records.put, node.records.delete

    async def cancelled_after(work) -> None:
        await work
        raise asyncio.CancelledError

    node.records.put = lambda *args: cancelled_after(put(*args))
    with pytest.raises(asyncio.CancelledError):
        await node.images.store(await node.source.pull(PullRequest(reference=parse("a:1"))))
    assert [image.id for image in node.images.list()] == [key for _, key in node.records.rows]
    node.records.delete = lambda *args: cancelled_after(delete(*args))
    with pytest.raises(asyncio.CancelledError):
        await node.images.remove("a:1")
    assert node.images.list() == []
    assert not node.records.rows
    await node.images.collect_owed()
    assert await node.layers.present() == frozenset()


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
