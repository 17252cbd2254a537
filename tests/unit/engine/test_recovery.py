"""A daemon's death after every record write, and a new daemon on the same world."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from isulad_py.model.container import ContainerState, ImageSpec, Mount
from isulad_py.model.errors import HostFailure
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodEnvironment, PodState
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode
from tests.unit.engine.node import IMAGE, Node, World


async def life(node: Node) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    container_id = await node.run_container(pod_id)
    await node.services.containers.stop(container_id, 1)
    await node.run_container(pod_id, name="second")
    await node.services.pods.stop(pod_id)
    await node.services.pods.remove(pod_id)


async def until_death(
    world: World, writes: int, moment: str, work: Callable[[Node], Coroutine[Any, Any, None]]
) -> bool:
    """Runs `work` in a daemon that dies at its n-th write; False where it lives to the end.

    At that write everything stops; then all tasks are cancelled while their owner takes no new ones, so that nothing is
    undone, as in a real death.
    """
    async with world.daemon() as node:
        await node.pull()
        dead, count = asyncio.Event(), 0
        put, delete = world.records.put, world.records.delete

        def dying(write: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
            async def call(*args: object) -> None:
                nonlocal count
                count += 1
                if count == writes and moment == "after":
                    await write(*args)
                if count >= writes:
                    dead.set()
                    await asyncio.Event().wait()
                await write(*args)

            return call

        world.records.put = dying(put)  # type: ignore[method-assign]
        world.records.delete = dying(delete)  # type: ignore[method-assign]
        try:
            working = node.tasks.start(work(node), name="work")
            death = node.tasks.start(dead.wait(), name="death")
            await asyncio.wait([working, death], return_when=asyncio.FIRST_COMPLETED)
            lived = working.done()
            await node.tasks.close()
            return not lived
        finally:
            del world.records.put, world.records.delete
            world.deaths.clear()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_death_at_every_write(moment: str) -> None:
    for writes in range(1, 80):
        world = World()
        if not await until_death(world, writes, moment, life):
            assert writes > 15
            return
        async with world.daemon() as node:
            for pod in node.services.registry.pods.values():
                assert pod.state in {PodState.READY, PodState.NOTREADY}, (writes, pod)
            for container in node.services.registry.containers.values():
                assert container.state not in {ContainerState.CREATING, ContainerState.REMOVING}, (writes, container)
            for pod in list(node.services.registry.pods.values()):
                await node.services.pods.stop(pod.id)
                await node.services.pods.remove(pod.id)
            assert not any(world.traces().values()), (writes, world.traces())
    raise AssertionError("a life takes more than 80 writes")


async def test_running_containers_are_taken_over(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod()
        container_id = await node.run_container(pod_id)
        before = node.services.queries.container(container_id)
    async with world.daemon() as node:
        assert node.services.queries.container(container_id) == before
        assert world.runtime.commands_ended == [container_id]
        world.runtime.end(container_id, 3)
        await node.until_exited(container_id)


async def test_an_end_without_a_daemon_is_found(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod(pid=NamespaceMode.POD)
        container_id = await node.run_container(pod_id)
    world.runtime.end(container_id, 42)
    world.runtime.end(pod_id, 137)
    async with world.daemon() as node:
        await node.until_exited(container_id)
        record = node.services.queries.container(container_id)
        assert record.exit is not None
        assert record.exit.exit_code == 42
        for _ in range(50):
            await asyncio.sleep(0)
        assert node.services.queries.pod(pod_id).state is PodState.NOTREADY


async def test_after_a_reboot_all_has_ended_and_the_network_is_given_back(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod()
        container_id = await node.run_container(pod_id)
    world.reboot()
    async with world.daemon() as node:
        record = node.services.queries.container(container_id)
        assert (record.state, record.reason) == (ContainerState.EXITED, "ContainerStatusUnknown")
        assert node.services.queries.pod(pod_id).state is PodState.NOTREADY
        await node.services.pods.stop(pod_id)
        assert not world.network.attached
        await node.services.pods.remove(pod_id)
    assert not any(world.traces().values())


async def test_what_lies_about_without_a_record_is_cleared(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod(pid=NamespaceMode.POD)
        volume = Mount(container_path="/v", image=ImageSpec(image=IMAGE))
        await node.run_container(pod_id, mounts=(volume,))
    assert world.traces()["views"]
    for row in list(world.records.rows):
        if row[0] != "image":
            del world.records.rows[row]
    async with world.daemon():
        pass
    traces = world.traces()
    traces.pop("network")
    assert not any(traces.values())


@pytest.mark.parametrize("error", [HostFailure("input/output error"), OSError("input/output error")])
async def test_what_cannot_be_looked_at_keeps_nobody_from_starting(world: World, error: Exception) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod()
        container_id = await node.run_container(pod_id)

    async def broken(environment: PodEnvironment) -> bool:
        raise error

    world.environments.intact = broken  # type: ignore[method-assign]
    world.rootfs.requests[ContainerId("stray")] = world.rootfs.requests[container_id]
    world.rootfs.faults.fail["remove"] = error
    async with world.daemon() as node:
        assert node.services.queries.pod(pod_id).state is PodState.READY
        world.runtime.end(container_id, 3)
        await node.until_exited(container_id)


async def test_nothing_is_deleted_because_it_could_not_be_read(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod()
        container_id = await node.run_container(pod_id)
    world.records.rows["container", container_id] = b"{rubbish"
    for _ in range(2):
        async with world.daemon():
            assert container_id in world.runtime.containers
            assert await world.rootfs.present()
    assert [row.payload for row in world.records.aside] == [b"{rubbish"]


async def test_a_start_that_was_under_way_is_settled_by_the_runtime(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod()
        container_id = await node.create(pod_id)
        await node.services.registry.containers.amend(container_id, lambda old: replace(old, starting_at=5))
        await world.runtime.start(container_id, "runc")
    async with world.daemon() as node:
        assert node.services.queries.container(container_id).state is ContainerState.RUNNING


@pytest.mark.parametrize("refused", [False, True])
async def test_an_update_that_was_under_way_is_made_again(world: World, *, refused: bool) -> None:
    asked, wanted = Resources(cpu_shares=512, oom_score_adj=900), Resources(cpuset_cpus="1", memory_limit_bytes=1 << 26)
    async with world.daemon() as node:
        await node.pull()
        container_id = await node.run_container(await node.run_pod(), resources=asked)
        await node.services.registry.containers.amend(container_id, lambda old: replace(old, updating_to=wanted))
    if refused:
        world.runtime.faults.fail_once("update", HostFailure("refused"))
    async with world.daemon() as node:
        whole = Resources(cpu_shares=512, cpuset_cpus="1", memory_limit_bytes=1 << 26)
        assert world.runtime.containers[container_id].resources == ([] if refused else [whole])
        record = node.services.queries.container(container_id)
        assert record.resources == (asked if refused else replace(whole, oom_score_adj=900))
        assert record.updating_to is None
        assert record.state is ContainerState.RUNNING


async def test_a_record_that_is_put_aside_keeps_only_its_own(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        kept, cleared = [await node.run_container(await node.run_pod(name)) for name in ("kept", "cleared")]
    world.records.rows["container", kept] = b"{rubbish"
    del world.records.rows["container", cleared]
    async with world.daemon():
        assert set(world.runtime.containers) == {kept}
        assert await world.rootfs.present() == {kept}
        assert world.network.faults.calls["collect"]


@pytest.mark.parametrize(("payload", "collected"), [(b"{rubbish", 0), (None, 1)])
async def test_addresses_stay_while_a_pods_record_is_put_aside(
    world: World, payload: bytes | None, collected: int
) -> None:
    async with world.daemon() as node:
        await node.pull()
        pod_id = await node.run_pod(pid=NamespaceMode.POD)
    if payload is None:
        del world.records.rows["pod", pod_id]
    else:
        world.records.rows["pod", pod_id] = payload
    world.network.faults.calls.clear()
    async with world.daemon():
        assert world.network.faults.calls["collect"] == collected
        assert (pod_id in world.runtime.containers) is (payload is not None)
        assert (pod_id in world.environments.requests) is (payload is not None)


async def test_leftovers_that_hang_keep_nobody_from_serving(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        stray = await node.run_container(await node.run_pod("stray"))
    del world.records.rows["container", stray]
    release = world.runtime.faults.hold("delete")
    async with world.daemon(patience_seconds=0) as node:
        fresh = await node.run_container(await node.run_pod("fresh"))
        release.set()
        for _ in range(50):
            await asyncio.sleep(0)
        assert set(world.runtime.containers) == {fresh}
        assert await world.rootfs.present() == {fresh}
