from __future__ import annotations

import asyncio

import pytest

from isulad_py.model.errors import HostFailure, ResourceExhausted
from isulad_py.model.pod import PodState
from isulad_py.model.security import NamespaceMode
from tests.unit.engine.node import Node, World


async def test_a_container_that_ends_at_once_has_true_times(node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id, "true")
    await node.until_exited(container_id)
    record = node.services.queries.container(container_id)
    assert record.reason == "Completed"
    assert record.exit is not None
    assert 0 < record.started_at <= record.exit.finished_at


async def test_memory_and_codes_give_the_reason(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    for name, code, oom, reason in (
        ("a", 0, False, "Completed"),
        ("b", 3, False, "Error"),
        ("c", 137, True, "OOMKilled"),
    ):
        container_id = await node.run_container(pod_id, name=name)
        world.runtime.end(container_id, code, oom_killed=oom)
        await node.until_exited(container_id)
        assert node.services.queries.container(container_id).reason == reason


async def test_nothing_runs_any_more_in_what_is_told_exited(node: Node, world: World) -> None:
    world.runtime.faults.fail_once("end_remaining", HostFailure("3 processes still run"))
    held = world.runtime.faults.hold("end_remaining")
    container_id = await node.run_container(await node.run_pod(), "sh", "-c", "sleep 9 & sleep 9 & exec serve")
    assert world.runtime.containers[container_id].others == 2
    world.runtime.end(container_id, 4)
    await world.runtime.faults.wait_entered("end_remaining")
    assert node.services.queries.container(container_id).exit is None
    held.set()
    for _ in range(50):
        await asyncio.sleep(0)
    assert node.services.queries.container(container_id).exit is None
    world.clock.advance(2)
    await node.until_exited(container_id)
    assert world.runtime.containers[container_id].others == 0


async def test_what_ended_without_a_daemon_is_emptied_by_the_next_one(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        container_id = await node.run_container(await node.run_pod(), "sh", "-c", "sleep 9 & exec serve")
    world.runtime.end(container_id, 4)
    assert world.runtime.containers[container_id].others == 1
    async with world.daemon() as node:
        await node.until_exited(container_id)
        assert world.runtime.containers[container_id].others == 0


async def test_an_exit_is_recorded_although_the_disk_was_full(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    world.records.failing = ResourceExhausted("disk full")
    world.runtime.end(container_id, 4)
    for _ in range(50):
        await asyncio.sleep(0)
    assert node.services.queries.container(container_id).exit is None
    world.records.failing = None
    world.clock.advance(5)
    await node.until_exited(container_id)
    record = node.services.queries.container(container_id)
    assert record.exit is not None
    assert record.exit.exit_code == 4


@pytest.mark.parametrize("error", [HostFailure("no descriptors"), OSError("too many open files")])
async def test_a_watch_that_fails_is_taken_up_again(world: World, error: Exception) -> None:
    wait, failures = world.runtime.wait_exit, 0

    async def flaky(*args, **keywords):
        nonlocal failures
        failures += 1
        if failures == 1:
            raise error
        return await wait(*args, **keywords)

    world.runtime.wait_exit = flaky  # type: ignore[method-assign]
    async with world.daemon() as node:
        await node.pull()
        container_id = await node.run_container(await node.run_pod())
        for _ in range(20):
            await asyncio.sleep(0)
        world.clock.advance(2)
        world.runtime.end(container_id, 6)
        await node.until_exited(container_id)
    assert failures == 2


async def test_the_end_of_a_pause_container_is_recorded_although_the_disk_was_full(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    world.records.failing = ResourceExhausted("disk full")
    world.runtime.end(pod_id, 0)
    for _ in range(50):
        await asyncio.sleep(0)
    world.records.failing = None
    world.clock.advance(5)
    for _ in range(50):
        await asyncio.sleep(0)
    assert node.services.queries.pod(pod_id).state is PodState.NOTREADY
