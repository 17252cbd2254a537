"""Containers that begin where a checkpoint ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from isulad_py.engine.registry import decode, encode
from isulad_py.engine.restores import check_spec
from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.container import ContainerRecord, ContainerState, ImageSpec, Mount, Processes
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
    ResourceExhausted,
)
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodSecurity
from isulad_py.model.resources import Resources
from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, UserNamespace
from isulad_py.ports.runtime import HandlerFeatures
from tests.unit.engine.node import IMAGE, Node, World, container_config

PLACE = "/backup/one.tar"
FROM = ImageSpec(image=PLACE)


async def checkpointed(node: Node) -> None:
    """PLACE is an archive of a container, whose pod has gone."""
    pod_id = await node.run_pod("origin")
    await node.services.checkpoints.container(await node.run_container(pod_id), PLACE)
    await node.services.pods.stop(pod_id)
    await node.services.pods.remove(pod_id)


async def created(node: Node, pod_id: str, **config: Any) -> ContainerId:
    asked = msgspec.structs.replace(container_config(**config), image=FROM)
    return await node.services.containers.create(pod_id, asked, None)


async def test_it_waits_for_its_start_without_a_process_and_is_restored_then(node: Node, world: World) -> None:
    await checkpointed(node)
    container_id = await created(node, await node.run_pod())
    record = node.services.queries.container(container_id)
    assert (record.state, record.restored_from) == (ContainerState.CREATED, PLACE)
    assert record.config.image.image == "docker.io/library/busybox:1"
    assert record.config.image.user_specified_image == PLACE
    assert record.image_id == node.services.images.require(IMAGE).id
    assert container_id not in world.runtime.containers
    assert set(world.checkpoints.kept) == {container_id}
    with pytest.raises(FailedPrecondition, match="nothing to update"):
        await node.services.containers.update(container_id, Resources(cpu_shares=2))

    await node.services.containers.start(container_id)
    launch = world.runtime.containers[container_id].launch
    assert launch.restore == f"/fake/checkpoints/{container_id}/checkpoint"
    assert launch.log_path == record.log_path
    record = node.services.queries.container(container_id)
    assert record.state is ContainerState.RUNNING
    assert record.processes.pid
    assert world.checkpoints.kept == {}
    world.runtime.end(container_id, 7)
    await node.until_exited(container_id)
    exit_ = node.services.queries.container(container_id).exit
    assert exit_ is not None
    assert exit_.exit_code == 7


async def test_the_image_under_it_is_pulled_where_it_is_missing(node: Node, world: World) -> None:
    await checkpointed(node)
    await node.services.images.remove(IMAGE)
    assert node.services.images.find(IMAGE) is None
    container_id = await created(node, await node.run_pod())
    [image] = node.services.images.list()
    assert node.services.queries.container(container_id).image_id == image.id


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"image_ref": "sha256:" + "7" * 64}, FailedPrecondition, "by now, not the image"),
        ({"image_ref": "sha256:" + "7" * 64, "image_name": ""}, FailedPrecondition, "no name to pull"),
        ({"image_ref": "example.org/away:1"}, NotFound, "example.org/away"),
        ({"image_ref": "UPPER CASE"}, InvalidInput, "UPPER CASE"),
        ({"binds": frozenset({"/data"})}, InvalidInput, "config.mounts: the checkpoint has mounts at /data"),
        ({"terminal": True}, InvalidInput, "config.tty"),
        ({"namespaces": frozenset({"user", "pid"})}, FailedPrecondition, "differ in their namespaces"),
    ],
)
async def test_what_does_not_fit_is_refused_and_leaves_nothing(
    node: Node, world: World, change: dict[str, Any], kind: type[EngineError], words: str
) -> None:
    await checkpointed(node)
    pod_id = await node.run_pod()
    before = world.traces()
    world.checkpoints.archives[PLACE] = msgspec.structs.replace(world.checkpoints.archives[PLACE], **change)
    with pytest.raises(kind, match=words) as caught:
        await created(node, pod_id)
    assert str(caught.value).startswith("config.")
    assert world.traces() == before


@pytest.mark.parametrize(
    "break_it",
    [
        lambda world: world.checkpoints.archives.clear(),
        lambda world: world.checkpoints.faults.fail_once("open", DataLoss("archive: no checkpoint")),
        lambda world: world.checkpoints.faults.fail_once("unpack", ResourceExhausted("disk full")),
        lambda world: setattr(world.checkpoints, "damage", DataLoss("rootfs-diff.tar: climbs out")),
        lambda world: setattr(world.checkpointer, "reason", "no CRIU here"),
    ],
)
async def test_a_bad_archive_is_named_by_its_field(node: Node, world: World, break_it: Callable[[World], None]) -> None:
    await checkpointed(node)
    pod_id = await node.run_pod()
    before = world.traces()
    break_it(world)
    with pytest.raises(EngineError, match=r"^config\.image\.image: "):
        await created(node, pod_id)
    assert world.traces() == before


async def test_a_root_of_this_host_is_refused(node: Node) -> None:
    await checkpointed(node)
    with pytest.raises(InvalidInput, match=r"config\.image\.image: .* into a root of this host"):
        await created(node, await node.run_pod(), external_rootfs="/srv")


async def test_pods_with_users_of_their_own_are_refused(node: Node, world: World) -> None:
    world.runtime.features_by_handler["runc"] = HandlerFeatures(name="runc", user_namespaces=True)
    await checkpointed(node)
    ids = (IdMapping(host_id=100_000, container_id=0, length=65_536),)
    own = UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)
    options = NamespaceOptions(pid=NamespaceMode.CONTAINER, userns=own)
    pod_id = await node.run_pod("own", security=PodSecurity(namespaces=options))
    with pytest.raises(FailedPrecondition, match=r"config\.image\.image: .* user namespace"):
        await created(node, pod_id)
    container_id = await node.run_container(pod_id)
    with pytest.raises(FailedPrecondition, match=r"CheckpointContainer: .* user namespace"):
        await node.services.checkpoints.container(container_id, "/backup/two.tar")


async def test_a_mount_that_would_be_missing_is_refused(node: Node) -> None:
    await checkpointed(node)
    with pytest.raises(InvalidInput, match=r"config\.mounts\[0\]: the checkpoint has no mount at /new"):
        await created(node, await node.run_pod(), mounts=(Mount(container_path="/new", host_path="/srv"),))


async def test_a_restore_that_fails_is_a_failed_start(node: Node, world: World) -> None:
    await checkpointed(node)
    container_id = await created(node, await node.run_pod())
    world.runtime.faults.fail_once("create", FailedPrecondition("create: criu failed; CRIU: no such pid"))
    with pytest.raises(FailedPrecondition, match="no such pid"):
        await node.services.containers.start(container_id)
    record = node.services.queries.container(container_id)
    assert (record.state, record.reason) == (ContainerState.EXITED, "StartError")
    await node.services.containers.remove(container_id)
    assert world.checkpoints.kept == {}


async def test_one_that_was_never_restored_ends_with_its_pod(node: Node, world: World) -> None:
    await checkpointed(node)
    pod_id = await node.run_pod()
    container_id = await created(node, pod_id)
    await node.services.pods.stop(pod_id)
    record = node.services.queries.container(container_id)
    assert (record.state, record.exit and record.exit.exit_code) == (ContainerState.EXITED, 137)
    await node.services.pods.remove(pod_id)
    assert [value for value in world.traces().values() if value] == []


async def test_a_pod_that_is_stopped_in_a_restore(node: Node, world: World) -> None:
    await checkpointed(node)
    pod_id = await node.run_pod()
    container_id = await created(node, pod_id)
    held = world.runtime.faults.hold("create")
    starting = asyncio.create_task(node.services.containers.start(container_id))
    await world.runtime.faults.wait_entered("create")
    stopping = asyncio.create_task(node.services.pods.stop(pod_id))
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(starting, stopping)
    assert node.services.queries.container(container_id).state is ContainerState.EXITED
    assert world.runtime.containers[container_id].state == "stopped"


async def waiting(world: World) -> ContainerId:
    async with world.daemon() as node:
        await node.pull()
        await checkpointed(node)
        return await created(node, await node.run_pod())


async def test_the_next_daemon_restores_it() -> None:
    world = World()
    container_id = await waiting(world)
    async with world.daemon() as node:
        assert node.services.queries.container(container_id).state is ContainerState.CREATED
        await node.services.containers.start(container_id)
        assert node.services.queries.container(container_id).state is ContainerState.RUNNING


async def dies_in_restore(world: World, step: str) -> ContainerId:
    container_id = await waiting(world)
    async with world.daemon() as node:
        faults = world.runtime.faults if step == "create" else world.checkpoints.faults
        faults.hold(step)
        node.tasks.start(node.services.containers.start(container_id), name="work")
        await faults.wait_entered(step)
        await node.tasks.close()
        world.deaths.clear()
        faults.__init__()  # type: ignore[misc]
    return container_id


async def test_a_restore_that_was_cut_off_is_ended() -> None:
    world = World()
    container_id = await dies_in_restore(world, "create")
    world.runtime.half_made.add(container_id)
    async with world.daemon() as node:
        record = node.services.queries.container(container_id)
        assert (record.state, record.reason) == (ContainerState.EXITED, "StartError")
        assert "the engine ended while" in (record.exit.message if record.exit else "")
        assert not world.runtime.half_made
        assert world.checkpoints.kept == {}


async def test_a_restore_that_came_to_its_end_is_taken_up() -> None:
    world = World()
    container_id = await dies_in_restore(world, "discard")
    key = ("container", container_id)
    record = decode(world.records.rows[key], ContainerRecord)
    # As it was before the facts were written.
    world.records.rows[key] = encode(msgspec.structs.replace(record, processes=Processes(), started_at=0))
    async with world.daemon() as node:
        record = node.services.queries.container(container_id)
        assert record.state is ContainerState.RUNNING
        assert record.processes == world.runtime.containers[container_id].processes
        assert world.checkpoints.kept == {}
        world.runtime.end(container_id, 3)
        await node.until_exited(container_id)


async def test_a_failed_removal_of_kept_state_harms_nothing(node: Node, world: World) -> None:
    await checkpointed(node)
    container_id = await created(node, await node.run_pod())
    world.checkpoints.faults.fail_once("discard", HostFailure("busy"))
    await node.services.containers.start(container_id)
    assert node.services.queries.container(container_id).state is ContainerState.RUNNING


def test_a_spec_with_the_same_mounts_fits() -> None:
    about = Checkpointed(
        name="x",
        image_name="i",
        image_ref="",
        binds=frozenset({"/data"}),
        namespaces=frozenset({"pid"}),
        terminal=False,
    )
    spec = {
        "mounts": [{"destination": "/proc", "type": "proc"}, {"destination": "/data", "options": ["rbind"]}],
        "linux": {"namespaces": [{"type": "pid"}]},
    }
    config = container_config(mounts=(Mount(container_path="/data/", host_path="/x"),))
    check_spec(config, msgspec.json.encode(spec), about)
