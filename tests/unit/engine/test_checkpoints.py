from __future__ import annotations

import asyncio

import pytest

from isulad_py.model.container import ContainerState
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    HostFailure,
    NotFound,
    ResourceExhausted,
)
from isulad_py.model.ids import ContainerId
from tests.unit.engine.node import Node, World

PLACE = "/backup/one.tar"


async def running(node: Node) -> ContainerId:
    return await node.run_container(await node.run_pod())


def goes_on(world: World, container_id: ContainerId) -> bool:
    return world.runtime.containers[container_id].state == "running" and world.checkpoints.kept == {}


async def test_an_archive_is_made_while_the_container_stands_still(node: Node, world: World) -> None:
    container_id = await running(node)
    writing = world.checkpoints.faults.hold("keep_changes")
    work = asyncio.create_task(node.services.checkpoints.container(container_id[:12], PLACE))
    await world.checkpoints.faults.wait_entered("keep_changes")
    assert world.runtime.containers[container_id].state == "paused"
    assert node.services.queries.container(container_id).state is ContainerState.RUNNING
    assert node.services.queries.container(container_id).checkpoint_to == PLACE
    assert not world.checkpoints.archives
    writing.set()
    await work
    assert goes_on(world, container_id)
    assert set(world.checkpoints.contents[PLACE]) == {"spec.dump", "config.dump", "status.dump", "status"}
    [dump] = world.checkpointer.dumps
    assert (dump.id, dump.handler) == (container_id, "runc")
    assert node.services.queries.container(container_id).checkpoint_to == ""


async def test_a_checkpoint_is_refused_with_the_reason(node: Node, world: World) -> None:
    container_id = await running(node)
    world.checkpointer.reason = "no CRIU here"
    with pytest.raises(FailedPrecondition, match="CheckpointContainer: no CRIU here"):
        await node.services.checkpoints.container(container_id, PLACE)
    assert world.checkpoints.faults.calls["begin"] == 0


async def test_what_is_wrong_with_the_request_comes_first(node: Node, world: World) -> None:
    checkpoints = node.services.checkpoints
    waiting = await node.create(await node.run_pod())
    world.checkpointer.reason = "no CRIU here"
    with pytest.raises(NotFound):
        await checkpoints.container("unknown", PLACE)
    with pytest.raises(FailedPrecondition, match="is created, not running"):
        await checkpoints.container(waiting, PLACE)


async def test_an_archive_is_never_replaced(node: Node, world: World) -> None:
    container_id = await running(node)
    await node.services.checkpoints.container(container_id, PLACE)
    with pytest.raises(AlreadyExists, match="location"):
        await node.services.checkpoints.container(container_id, PLACE)
    assert goes_on(world, container_id)


@pytest.mark.parametrize(
    ("where", "step", "error"),
    [
        ("runtime", "pause", HostFailure("the freezer is stuck")),
        ("checkpointer", "dump", FailedPrecondition("checkpoint: criu failed; CRIU: a tcp socket")),
        ("rootfs", "changes", NotFound("gone")),
        ("checkpoints", "keep_changes", ResourceExhausted("disk full")),
        ("checkpoints", "write", ResourceExhausted("disk full")),
    ],
)
async def test_after_a_failure_the_container_goes_on_and_nothing_is_left(
    node: Node, world: World, where: str, step: str, error: Exception
) -> None:
    container_id = await running(node)
    getattr(world, where).faults.fail_once(step, error)
    with pytest.raises(type(error)):
        await node.services.checkpoints.container(container_id, PLACE)
    assert goes_on(world, container_id)
    assert (world.checkpoints.archives, world.checkpoints.parts) == ({}, set())
    assert node.services.queries.container(container_id).checkpoint_to == ""
    await node.services.checkpoints.container(container_id, PLACE)


async def test_after_its_timeout_the_container_goes_on(node: Node, world: World) -> None:
    container_id = await running(node)
    world.checkpointer.faults.hold("dump")
    with pytest.raises(DeadlineExceeded, match=r"not done within 0\.01 s"):
        await node.services.checkpoints.container(container_id, PLACE, 0.01)
    assert goes_on(world, container_id)


async def test_a_second_one_at_the_same_time_is_refused(node: Node, world: World) -> None:
    container_id = await running(node)
    world.checkpointer.faults.hold("dump")
    first = asyncio.create_task(node.services.checkpoints.container(container_id, PLACE))
    await world.checkpointer.faults.wait_entered("dump")
    with pytest.raises(FailedPrecondition, match="already"):
        await node.services.checkpoints.container(container_id, "/backup/two.tar")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert goes_on(world, container_id)


async def test_a_container_that_is_removed_meanwhile(node: Node, world: World) -> None:
    container_id = await running(node)
    held = world.checkpoints.faults.hold("write")
    work = asyncio.create_task(node.services.checkpoints.container(container_id, PLACE))
    await world.checkpoints.faults.wait_entered("write")
    await node.services.containers.remove(container_id)
    held.set()
    await work
    assert world.checkpoints.kept == {}
    assert node.services.registry.containers.find(container_id) is None


@pytest.mark.parametrize(("where", "step"), [("checkpointer", "dump"), ("checkpoints", "write")])
async def test_the_next_daemon_lets_a_container_go_on(where: str, step: str) -> None:
    world = World()
    async with world.daemon() as node:
        await node.pull()
        container_id = await running(node)
        held = getattr(world, where).faults
        held.hold(step)
        work = node.tasks.start(node.services.checkpoints.container(container_id, PLACE), name="work")
        await held.wait_entered(step)
        await node.tasks.close()  # no task may start any more: nothing is undone
        assert work.cancelled() or work.exception() is not None
        world.deaths.clear()
    world.checkpointer.faults, world.checkpoints.faults = type(held)(), type(held)()
    async with world.daemon() as node:
        assert node.services.queries.container(container_id).checkpoint_to == ""
        assert goes_on(world, container_id)
        assert world.checkpoints.parts == set()
        assert [place.work for place in world.checkpointer.ended] == [f"/fake/checkpoints/{container_id}"]
        await node.services.checkpoints.container(container_id, PLACE)


async def test_what_cannot_be_cleared_is_tried_again() -> None:
    world = World()
    async with world.daemon() as node:
        await node.pull()
        container_id = await running(node)
        world.checkpointer.faults.hold("dump")
        work = node.tasks.start(node.services.checkpoints.container(container_id, PLACE), name="work")
        await world.checkpointer.faults.wait_entered("dump")
        await node.tasks.close()
        assert work.done()
        world.deaths.clear()
    world.checkpointer.faults.fail_once("end_dump", HostFailure("still runs"))
    async with world.daemon() as node:
        assert node.services.queries.container(container_id).checkpoint_to == PLACE
    async with world.daemon() as node:
        assert node.services.queries.container(container_id).checkpoint_to == ""
        assert goes_on(world, container_id)
