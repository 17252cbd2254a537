from __future__ import annotations

import asyncio
import json
import signal

import pytest
from msgspec.structs import replace

from isulad_py.model.container import ContainerState, ImageSpec, Mount
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
)
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodUsers
from isulad_py.model.security import (
    ContainerSecurity,
    IdMapping,
    NamespaceMode,
    NamespaceOptions,
    PodSecurity,
    UserNamespace,
)
from isulad_py.ports.runtime import HandlerFeatures
from tests.unit.engine.node import IMAGE, Node, World, container_config

IDS = IdMapping(host_id=100000, container_id=0, length=65536)


def only_pods(world: World) -> bool:
    """Whether no container has left a trace."""
    traces = world.traces()
    records = [kind for kind, _ in world.records.rows if kind == "container"]
    return not (records or traces["containers"] or traces["roots"])


async def test_a_life(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    queries, containers = node.services.queries, node.services.containers
    assert queries.container(container_id).state is ContainerState.CREATED
    await containers.start(container_id)
    record = queries.container(container_id)
    assert record.state is ContainerState.RUNNING
    assert record.log_path == "/var/log/pods/main.log"
    await containers.stop(container_id, 10)
    record = queries.container(container_id)
    assert (record.state, record.exit and record.exit.exit_code) == (ContainerState.EXITED, 143)
    assert record.exit is not None
    assert record.created_at <= record.started_at <= record.exit.finished_at
    await containers.remove(container_id)
    with pytest.raises(NotFound):
        queries.container(container_id)
    assert only_pods(world)


STEPS = [
    ("rootfs", "prepare"),
    ("hostfiles", "resolve_mounts"),
    ("hostfiles", "ensure_directories"),
    ("runtime", "create"),
]


@pytest.mark.parametrize(("part", "step"), STEPS)
async def test_a_creation_that_fails_anywhere_leaves_nothing(node: Node, world: World, part: str, step: str) -> None:
    pod_id = await node.run_pod()
    getattr(world, part).faults.fail_once(step, HostFailure(f"{step} went wrong"))
    with pytest.raises(HostFailure, match=f"{step} went wrong"):
        await node.create(pod_id)
    assert only_pods(world)
    await node.create(pod_id)


@pytest.mark.parametrize(("part", "step"), STEPS)
async def test_a_creation_that_is_cancelled_anywhere_leaves_nothing(
    node: Node, world: World, part: str, step: str
) -> None:
    pod_id = await node.run_pod()
    faults = getattr(world, part).faults
    gate = faults.hold(step)
    creating = asyncio.get_running_loop().create_task(node.create(pod_id))
    await faults.wait_entered(step)
    creating.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert only_pods(world)


async def test_a_container_of_a_pod_that_is_stopped_meanwhile_is_not_made(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    gate = world.runtime.faults.hold("create")
    creating = asyncio.get_running_loop().create_task(node.create(pod_id))
    await world.runtime.faults.wait_entered("create")
    await node.services.pods.stop(pod_id)
    gate.set()
    with pytest.raises(FailedPrecondition, match="stopped meanwhile"):
        await creating
    assert only_pods(world)


async def test_what_does_not_fit_is_refused_before_any_effect(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    with pytest.raises(NotFound):
        await node.create("unknown")
    with pytest.raises(InvalidInput, match=r"mounts\[0\]\.host_path"):
        await node.create(pod_id, mounts=(Mount(container_path="/x", host_path="/not/there"),))
    await node.create(pod_id)
    with pytest.raises(AlreadyExists):
        await node.create(pod_id)
    await node.services.pods.stop(pod_id)
    with pytest.raises(FailedPrecondition):
        await node.create(pod_id, name="late")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (NamespaceOptions(network=NamespaceMode.NODE), r"namespace_options\.network: NODE in a pod with POD"),
        (NamespaceOptions(network=NamespaceMode.CONTAINER), r"namespace_options\.network: CONTAINER"),
        (NamespaceOptions(ipc=NamespaceMode.NODE), r"namespace_options\.ipc: NODE in a pod with POD"),
        (NamespaceOptions(pid=NamespaceMode.NODE), r"namespace_options\.pid: NODE in a pod with CONTAINER"),
        (
            NamespaceOptions(userns=UserNamespace(mode=NamespaceMode.POD, uids=(IDS,), gids=(IDS,))),
            r"namespace_options\.userns_options: not those of the pod",
        ),
    ],
)
async def test_a_container_shares_its_pods_namespaces(
    node: Node, world: World, options: NamespaceOptions, field: str
) -> None:
    pod_id = await node.run_pod()
    with pytest.raises(InvalidInput, match=field):
        await node.create(pod_id, security=ContainerSecurity(namespaces=options))
    assert only_pods(world)
    namespaces = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    of_host = await node.run_pod("host", security=PodSecurity(namespaces=namespaces))
    for mode in (NamespaceMode.POD, NamespaceMode.NODE):
        same = ContainerSecurity(namespaces=NamespaceOptions(network=mode))
        await node.create(of_host, name=mode.name, security=same)


OWN_USERS = UserNamespace(mode=NamespaceMode.POD, uids=(IDS,), gids=(IDS,))


async def run_mapped_pod(node: Node, world: World) -> PodId:
    world.runtime.features_by_handler["runc"] = HandlerFeatures(name="runc", user_namespaces=True)
    options = NamespaceOptions(pid=NamespaceMode.CONTAINER, userns=OWN_USERS)
    return await node.run_pod("mapped", security=PodSecurity(namespaces=options))


async def test_a_container_has_the_users_of_its_pod(node: Node, world: World) -> None:
    pod_id = await run_mapped_pod(node, world)
    for number, userns in enumerate((None, OWN_USERS)):
        container_id = await node.create(
            pod_id,
            name=str(number),
            security=ContainerSecurity(namespaces=NamespaceOptions(pid=NamespaceMode.CONTAINER, userns=userns)),
            mounts=(Mount(container_path="/img", image=ImageSpec(image=IMAGE), readonly=True),),
        )
        users = world.rootfs.requests[container_id].users
        assert users == PodUsers(ids=OWN_USERS, path=f"/fake/pods/{pod_id}/ns/user")
        assert world.layers.view_users[f"{container_id}-0"] == users
        spec = json.loads(world.runtime.containers[container_id].launch.spec)
        assert {"type": "user", "path": users.path} in spec["linux"]["namespaces"]
        assert spec["linux"]["uidMappings"] == [{"containerID": 0, "hostID": 100000, "size": 65536}]
        assert world.runtime.containers[container_id].launch.stdio_uid == 100000
    of_host = await node.create(await node.run_pod("host"))
    assert world.rootfs.requests[of_host].users is None
    assert world.runtime.containers[of_host].launch.stdio_uid is None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (NamespaceOptions(userns=UserNamespace(mode=NamespaceMode.NODE)), r"\.userns_options: not those of the pod"),
        (
            NamespaceOptions(userns=UserNamespace(mode=NamespaceMode.POD, uids=(IDS,), gids=(replace(IDS, length=9),))),
            r"\.userns_options: not those of the pod",
        ),
        (NamespaceOptions(pid=NamespaceMode.NODE), r"\.pid: NODE in a pod with CONTAINER"),
    ],
)
async def test_a_container_cannot_leave_its_pods_users(
    node: Node, world: World, options: NamespaceOptions, field: str
) -> None:
    pod_id = await run_mapped_pod(node, world)
    with pytest.raises(InvalidInput, match=rf"^config\.linux\.security_context\.namespace_options{field}"):
        await node.create(pod_id, security=ContainerSecurity(namespaces=options))
    assert only_pods(world)


async def test_who_is_not_mapped_is_refused_and_leaves_nothing(node: Node, world: World) -> None:
    pod_id = await run_mapped_pod(node, world)
    with pytest.raises(InvalidInput, match=r"run_as_user: 65536 is not mapped"):
        await node.create(pod_id, security=ContainerSecurity(run_as_user=65536))
    assert only_pods(world)


async def test_an_image_for_an_unknown_runtime_is_refused(node: Node, world: World) -> None:
    config = container_config()
    config = replace(config, image=replace(config.image, runtime_handler="nobody"))
    with pytest.raises(InvalidInput, match="runtime_handler"):
        await node.services.containers.create(await node.run_pod(), config, None)
    assert only_pods(world)


async def test_a_program_that_cannot_be_started(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    world.runtime.faults.fail_once("start", HostFailure("no such program"))
    with pytest.raises(HostFailure, match="no such program"):
        await node.services.containers.start(container_id)
    record = node.services.queries.container(container_id)
    assert (record.state, record.reason) == (ContainerState.EXITED, "StartError")
    assert record.exit is not None
    assert "no such program" in record.exit.message
    with pytest.raises(FailedPrecondition):
        await node.services.containers.start(container_id)
    await node.services.containers.remove(container_id)
    assert only_pods(world)


async def test_a_start_goes_on_without_its_caller(node: Node, world: World) -> None:
    container_id = await node.create(await node.run_pod())
    start, begun, gate = world.runtime.start, asyncio.Event(), asyncio.Event()

    async def slow(*args):
        await start(*args)
        begun.set()
        await gate.wait()

    world.runtime.start = slow  # type: ignore[method-assign]
    caller = asyncio.get_running_loop().create_task(node.services.containers.start(container_id))
    await begun.wait()
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    again = asyncio.get_running_loop().create_task(node.services.containers.start(container_id))
    await asyncio.sleep(0)
    gate.set()
    await again
    assert node.services.queries.container(container_id).state is ContainerState.RUNNING
    await node.services.containers.stop(container_id, 0)
    assert world.runtime.containers[container_id].state == "stopped"


async def test_nothing_runs_after_a_start_without_an_answer(node: Node, world: World) -> None:
    container_id = await node.create(await node.run_pod())
    start = world.runtime.start

    async def late(*args):
        await start(*args)
        raise DeadlineExceeded("start: the runtime gave no answer within 60 s")

    world.runtime.start = late  # type: ignore[method-assign]
    with pytest.raises(DeadlineExceeded):
        await node.services.containers.start(container_id)
    record = node.services.queries.container(container_id)
    assert (record.state, record.reason) == (ContainerState.EXITED, "StartError")
    assert world.runtime.containers[container_id].state == "stopped"


async def test_stop_escalates_after_its_grace(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod(), "sleep", "1000")
    await node.services.containers.stop(container_id, 0.01)
    assert world.runtime.containers[container_id].signals == [signal.SIGTERM, signal.SIGKILL]
    record = node.services.queries.container(container_id)
    assert record.exit is not None
    assert record.exit.exit_code == 137


async def test_a_shorter_stop_takes_effect_though_a_longer_one_is_under_way(node: Node) -> None:
    container_id = await node.run_container(await node.run_pod(), "sleep", "1000")
    containers = node.services.containers
    patient = asyncio.get_running_loop().create_task(containers.stop(container_id, 3600))
    for _ in range(20):
        await asyncio.sleep(0)
    await containers.stop(container_id, 0)
    await patient


async def test_a_stop_without_grace_sends_no_stop_signal(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    await node.services.containers.stop(container_id, 0)
    assert world.runtime.containers[container_id].signals == [signal.SIGKILL]


async def test_a_stop_during_a_start_stops_what_was_started(node: Node, world: World) -> None:
    container_id = await node.create(await node.run_pod())
    gate = world.runtime.faults.hold("start")
    loop = asyncio.get_running_loop()
    starting = loop.create_task(node.services.containers.start(container_id))
    await world.runtime.faults.wait_entered("start")
    stopping = loop.create_task(node.services.containers.stop(container_id, 0))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(starting, stopping)
    assert node.services.queries.container(container_id).state is ContainerState.EXITED
    assert world.runtime.containers[container_id].state == "stopped"


async def test_a_paused_container_that_ignores_signals_is_killed(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod(), "sleep", "1000")
    await world.runtime.pause(container_id, "runc")
    await node.services.registry.containers.amend(container_id, lambda old: replace(old, paused_at=1))
    await node.services.containers.stop(container_id, 0.01)
    record = node.services.queries.container(container_id)
    assert (record.state, record.paused_at) == (ContainerState.EXITED, 0)


async def test_stop_and_remove_of_what_does_not_run_succeed(node: Node, world: World) -> None:
    containers = node.services.containers
    await containers.stop("unknown", 1)
    await containers.remove("unknown")
    pod_id = await node.run_pod()
    created = await node.create(pod_id)
    await containers.stop(created, 1)
    await containers.remove(created)
    running = await node.run_container(pod_id)
    await asyncio.gather(*(containers.remove(running) for _ in range(3)))
    assert only_pods(world)


async def test_a_stopped_pod_has_no_waiting_containers(node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    await node.services.pods.stop(pod_id)
    assert node.services.queries.container(container_id).state is ContainerState.EXITED


async def test_a_removal_that_fails_is_taken_up_by_the_sweeper(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    world.rootfs.faults.fail_once("remove", HostFailure("busy"))
    with pytest.raises(HostFailure, match="busy"):
        await node.services.containers.remove(container_id)
    assert node.services.queries.container(container_id).state is ContainerState.REMOVING
    await node.services.sweeper.sweep()
    assert only_pods(world)


async def test_a_log_is_reopened_while_the_container_runs(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    await node.services.containers.reopen_log(container_id)
    assert world.runtime.containers[ContainerId(container_id)].log_openings == 2
    await node.services.containers.stop(container_id, 0)
    with pytest.raises(FailedPrecondition):
        await node.services.containers.reopen_log(container_id)


async def test_a_container_whose_directory_is_lost_is_stopped_all_the_same(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    world.runtime.lose_directory()
    await node.services.containers.stop(container_id, 1)
    record = node.services.queries.container(container_id)
    assert (record.state, record.reason) == (ContainerState.EXITED, "ContainerStatusUnknown")
    await node.services.containers.remove(container_id)
    assert not world.runtime.lost


async def test_a_container_without_directory_is_removed_with_its_processes(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    await node.create(pod_id)
    world.runtime.lose_directory()
    assert len(world.runtime.lost) == 2
    await node.services.pods.remove(pod_id)
    assert not world.runtime.lost


async def test_what_is_remembered_of_another_boot_is_nobodys(world: World) -> None:
    async with world.daemon() as node:
        await node.pull()
        container_id = await node.run_container(await node.run_pod())
    world.runtime.lose_directory()
    world.boot += 1
    async with world.daemon() as node:
        await node.services.containers.remove(container_id)
    assert [container.signals for container in world.runtime.lost.values()] == [[]]


async def test_a_stopped_pod_has_no_process_of_a_container_that_is_being_removed(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    world.runtime.faults.fail["delete"] = HostFailure("delete: busy")
    with pytest.raises(HostFailure, match="busy"):
        await node.services.containers.remove(container_id)
    assert node.services.queries.container(container_id).state is ContainerState.REMOVING
    assert world.runtime.containers[container_id].fact is None
    await node.services.pods.stop(pod_id)
    assert world.runtime.containers[container_id].fact is not None


async def test_a_root_of_the_host_s_needs_no_image_and_is_asked_for_as_given(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    containers = node.services.containers
    config = replace(container_config(), image=ImageSpec(), external_rootfs="/srv/root")
    container_id = await containers.create(pod_id, config, None)
    request = world.rootfs.requests[container_id]
    assert (request.external, request.layers) == ("/srv/root", ())
    record = node.services.queries.container(container_id)
    assert (record.image_id, record.image_ref) == ("", "")
    assert record.config.external_rootfs == "/srv/root"
    await containers.start(container_id)
    await containers.remove(container_id)
    assert only_pods(world)


async def test_an_image_beside_a_root_of_the_host_s_must_be_here(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    config = replace(container_config(), image=ImageSpec(image="none:1"), external_rootfs="/srv/root")
    with pytest.raises(NotFound, match="none:1"):
        await node.services.containers.create(pod_id, config, None)
    assert only_pods(world)


async def test_the_size_of_a_root_is_asked_for(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    container_id = await node.services.containers.create(pod_id, container_config(storage_bytes=1 << 30), None)
    assert world.rootfs.requests[container_id].quota_bytes == 1 << 30
