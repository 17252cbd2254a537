from __future__ import annotations

import asyncio
import json

import pytest

from isulad_py.model.errors import AlreadyExists, HostFailure, InvalidInput, NotFound, ResourceExhausted, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodState, PodUsers
from isulad_py.model.resources import Resources
from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, PodSecurity, UserNamespace
from isulad_py.ports.runtime import HandlerFeatures
from tests.unit.engine.node import Node, World, pod_config


async def test_a_pod_is_ready_with_an_address_and_gone_without_a_trace(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    record = node.services.queries.pod(pod_id)
    assert record.state is PodState.READY
    assert record.network is not None
    assert record.network.ips
    assert record.pause is None
    await node.services.pods.stop(pod_id)
    assert node.services.queries.pod(pod_id).state is PodState.NOTREADY
    assert not world.network.attached
    await node.services.pods.remove(pod_id)
    with pytest.raises(NotFound):
        node.services.queries.pod(pod_id)
    assert not any(world.traces().values())


async def test_host_network_asks_nothing_of_the_network(node: Node, world: World) -> None:
    namespaces = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    pod_id = await node.run_pod(security=PodSecurity(namespaces=namespaces))
    assert node.services.queries.pod(pod_id).network is None
    assert not world.network.attached


async def test_only_a_shared_pid_namespace_needs_a_pause_container(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    record = node.services.queries.pod(pod_id)
    assert record.pause is not None
    assert record.environment.pidns_path == f"/proc/{record.pause.pid}/ns/pid"
    assert pod_id in world.runtime.containers
    await node.services.pods.remove(pod_id)
    assert not any(world.traces().values())


async def test_configuration_may_want_a_pause_container_always(world: World) -> None:
    async with world.daemon(pod_sandbox_mode="pause") as node:
        pod_id = await node.run_pod()
        assert pod_id in world.runtime.containers


async def test_a_pod_without_its_pause_container_is_not_ready(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    world.runtime.end(pod_id, 137)
    for _ in range(100):
        await asyncio.sleep(0)
    assert node.services.queries.pod(pod_id).state is PodState.NOTREADY


STEPS = [
    ("environments", "create"),
    ("network", "attach"),
    ("environments", "settle"),
    ("rootfs", "prepare"),
    ("runtime", "create"),
    ("runtime", "start"),
]


@pytest.mark.parametrize(("part", "step"), STEPS)
async def test_a_run_that_fails_anywhere_leaves_nothing(node: Node, world: World, part: str, step: str) -> None:
    getattr(world, part).faults.fail_once(step, HostFailure(f"{step} went wrong"))
    with pytest.raises(HostFailure, match=f"{step} went wrong"):
        await node.run_pod(pid=NamespaceMode.POD)
    assert not any(world.traces().values())
    await node.run_pod(pid=NamespaceMode.POD)


@pytest.mark.parametrize(("part", "step"), STEPS)
async def test_a_run_that_is_cancelled_anywhere_leaves_nothing(node: Node, world: World, part: str, step: str) -> None:
    faults = getattr(world, part).faults
    gate = faults.hold(step)
    running = asyncio.get_running_loop().create_task(node.run_pod(pid=NamespaceMode.POD))
    await faults.wait_entered(step)
    running.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any(world.traces().values())


async def test_every_record_write_may_fail(node: Node, world: World) -> None:
    put, writes = world.records.put, 0

    async def failing_put(kind: str, key: str, payload: bytes) -> None:
        nonlocal writes
        writes += 1
        if writes == limit:
            raise ResourceExhausted("disk full")
        await put(kind, key, payload)

    world.records.put = failing_put  # type: ignore[method-assign]
    for limit in range(1, 50):
        writes = 0
        try:
            await node.run_pod()
        except ResourceExhausted:
            assert not any(world.traces().values()), limit
        else:
            assert limit > 3
            return
    raise AssertionError("a pod takes more than 50 writes")


async def test_what_cannot_be_undone_stays_on_record_and_is_swept_later(node: Node, world: World) -> None:
    world.network.faults.fail_once("attach", HostFailure("no address"))
    world.environments.faults.fail["destroy"] = HostFailure("busy")
    with pytest.raises(HostFailure, match="no address; and while undoing: busy"):
        await node.run_pod()
    [record] = node.services.registry.pods.values()
    assert record.state is PodState.NOTREADY
    await node.services.sweeper.sweep()
    assert node.services.registry.pods
    del world.environments.faults.fail["destroy"]
    await node.services.sweeper.sweep()
    assert not any(world.traces().values())


async def test_a_name_is_held_by_one_pod(node: Node) -> None:
    pod_id = await node.run_pod("twin")
    with pytest.raises(AlreadyExists, match=pod_id):
        await node.run_pod("twin")


async def test_an_unknown_handler_is_refused_before_any_effect(node: Node, world: World) -> None:
    with pytest.raises(InvalidInput, match="no-such-handler"):
        await node.services.pods.run(pod_config(), "no-such-handler")
    assert not any(world.traces().values())


async def test_users_of_its_own_need_a_runtime_and_a_kernel_that_have_them(node: Node, world: World) -> None:
    ids = (IdMapping(host_id=100000, container_id=0, length=65536),)
    users = UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)
    security = PodSecurity(namespaces=NamespaceOptions(userns=users))
    field = r"^config\.linux\.security_context\.namespace_options\.userns_options: "
    with pytest.raises(Unsupported, match=f"{field}runtime runc 1.0.0 offers no user namespaces"):
        await node.run_pod(security=security)
    world.runtime.features_by_handler["runc"] = HandlerFeatures(name="runc", user_namespaces=True)
    world.rootfs.obstacle = "map the owners: no"
    async with world.daemon() as another:
        with pytest.raises(Unsupported, match=f"{field}map the owners"):
            await another.run_pod(security=security)
        assert not any(world.traces().values())
        world.rootfs.obstacle = ""
        pod_id = await another.run_pod(security=security)  # with a pause container
        assert world.environments.requests[pod_id].users == users
        assert world.rootfs.requests[ContainerId(pod_id)].users == PodUsers(
            ids=users, path=f"/fake/pods/{pod_id}/ns/user"
        )
        await another.services.pods.remove(pod_id)


async def test_stop_and_remove_are_idempotent_and_may_come_at_once(node: Node, world: World) -> None:
    await node.services.pods.stop("unknown")
    await node.services.pods.remove("unknown")
    pod_id = await node.run_pod()
    await node.run_container(pod_id)
    pods = node.services.pods
    await asyncio.gather(pods.stop(pod_id), pods.stop(pod_id), pods.remove(pod_id), pods.remove(pod_id))
    await pods.stop(pod_id)
    assert not any(world.traces().values())
    assert world.network.faults.calls["detach"] == 1


async def test_a_failed_detach_is_owed_and_tried_again(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    world.network.faults.fail_once("detach", HostFailure("plugin crashed"))
    with pytest.raises(HostFailure, match="plugin crashed"):
        await node.services.pods.stop(pod_id)
    assert node.services.queries.pod(pod_id).state is PodState.NOTREADY
    await node.services.pods.stop(pod_id)
    assert not world.network.attached


async def test_a_stop_goes_on_without_its_caller(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    gate = world.network.faults.hold("detach")
    stopping = asyncio.get_running_loop().create_task(node.services.pods.stop(pod_id))
    await world.network.faults.wait_entered("detach")
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    gate.set()
    await node.services.pods.stop(pod_id)
    assert world.network.faults.calls["detach"] == 1


async def test_one_slow_pod_delays_nobody(node: Node, world: World) -> None:
    gate = world.network.faults.hold("attach")
    slow = asyncio.get_running_loop().create_task(node.run_pod("slow"))
    await world.network.faults.wait_entered("attach")
    namespaces = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    pod_id = await node.run_pod("quick", security=PodSecurity(namespaces=namespaces))
    await node.run_container(pod_id)
    await node.services.pods.remove(pod_id)
    assert not slow.done()
    gate.set()
    await slow


async def test_resources_are_kept_and_told(node: Node) -> None:
    overhead, first = Resources(cpu_shares=2), Resources(memory_limit_bytes=1 << 20)
    pod_id = await node.run_pod(overhead=overhead, resources=first)
    assert node.services.queries.pod(pod_id).resources == first
    second = Resources(memory_limit_bytes=1 << 21)
    await node.services.pods.update_resources(pod_id[:12], overhead=None, resources=second)
    record = node.services.queries.pod(pod_id)
    assert (record.overhead, record.resources) == (overhead, second)
    told = json.loads((await node.services.queries.pod_info(pod_id))["info"])
    assert (told["resources"], told["overhead"]) == ({"memory_limit_bytes": 1 << 21}, {"cpu_shares": 2})
    with pytest.raises(NotFound):
        await node.services.pods.update_resources("unknown", overhead=None, resources=second)


async def test_that_a_network_is_owed_is_flushed_to_the_disk(node: Node, world: World) -> None:
    """What plugins keep of it (an address in a file) may outlive a cut of the power."""
    await node.run_pod()
    writes = [kind for kind, _, _ in world.records.journal[-4:]]
    assert "flush" in writes
    before = len(world.records.journal)
    namespaces = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    await node.services.pods.run(pod_config("host", security=PodSecurity(namespaces=namespaces)), "")
    assert ("flush", "", "") not in world.records.journal[before:]
