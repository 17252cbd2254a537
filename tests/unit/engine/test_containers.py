from __future__ import annotations

import asyncio
import json
import signal

import pytest
from msgspec.structs import replace

from isulad_py.engine.containers import merge
from isulad_py.model.container import ContainerState, ImageSpec, Mount
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
    ResourceExhausted,
)
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodUsers
from isulad_py.model.resources import HugepageLimit, Resources
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


async def test_update_merges_and_hands_on(node: Node, world: World) -> None:
    resources = Resources(cpu_shares=512, memory_limit_bytes=1 << 20)
    container_id = await node.run_container(await node.run_pod(), resources=resources)
    await node.services.containers.update(container_id, Resources(cpu_shares=100))
    assert node.services.queries.container(container_id).resources == Resources(
        cpu_shares=100, memory_limit_bytes=1 << 20
    )
    whole = Resources(cpu_shares=100, memory_limit_bytes=1 << 20)
    assert world.runtime.containers[container_id].resources == [whole]


async def test_an_update_sets_no_score_that_it_does_not_name(node: Node, world: World) -> None:
    """A process may have changed its own meanwhile."""
    asked = Resources(cpu_shares=512, oom_score_adj=900)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    await node.services.containers.update(container_id, Resources(cpu_shares=100))
    assert world.runtime.containers[container_id].resources == [Resources(cpu_shares=100)]


async def test_an_update_hands_all_limits_on_again(world: World) -> None:
    """systemd writes some of them over whenever it is told of a change."""
    world.host |= {"cgroup_version": 2, "cgroup_controllers": frozenset({"cpu", "memory"})}
    async with world.daemon() as node:
        await node.pull()
        asked = Resources(unified={"memory.oom.group": "1", "memory.high": "9"})
        container_id = await node.run_container(await node.run_pod(), resources=asked)
        await node.services.containers.update(container_id, Resources(cpu_shares=100, unified={"memory.high": "8"}))
        wanted = Resources(cpu_shares=100, unified={"memory.oom.group": "1", "memory.high": "8"})
        assert world.runtime.containers[container_id].resources == [wanted]
        assert node.services.queries.container(container_id).resources == wanted


async def test_an_update_is_all_or_nothing(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod(), resources=Resources(cpu_shares=512))
    container = world.runtime.containers[container_id]
    before = container.limits
    world.runtime.faults.fail_once("update", HostFailure("refused"))
    with pytest.raises(HostFailure):
        await node.services.containers.update(container_id, Resources(cpu_shares=200))
    # And where the runtime has done it, and the record cannot be written.
    world.records.failing = ResourceExhausted("disk full")
    with pytest.raises(ResourceExhausted, match="disk full"):
        await node.services.containers.update(container_id, Resources(cpu_shares=200, cpuset_cpus="1"))
    world.records.failing = None
    assert container.limits == before
    assert node.services.queries.container(container_id).resources == Resources(cpu_shares=512)
    await node.services.containers.update(container_id, Resources(cpu_shares=200))
    assert container.limits.cpu_shares == node.services.queries.container(container_id).resources.cpu_shares == 200


async def test_an_update_whose_caller_goes_away_while_it_is_put_on_record_is_none(
    node: Node, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Resources(cpu_shares=512, oom_score_adj=900)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    container = world.runtime.containers[container_id]
    before, put = container.limits, world.records.put
    writing = asyncio.Event()

    async def hang_once(kind: str, key: str, payload: bytes) -> None:
        """What a cancellation lets go on is written (ports.storage.Records)."""
        monkeypatch.setattr(world.records, "put", put)
        await put(kind, key, payload)
        writing.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(world.records, "put", hang_once)
    wanted = Resources(cpu_shares=200, oom_score_adj=950)
    updating = asyncio.ensure_future(node.services.containers.update(container_id, wanted))
    await writing.wait()
    assert container.limits != before
    updating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await updating
    assert container.limits == before
    assert node.services.queries.container(container_id).resources == asked
    await node.services.registry.containers.load(lambda record: record.name)
    assert node.services.queries.container(container_id).resources == asked


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (Resources(cpu_quota_us=5), r"linux\.cpu_quota"),
        (Resources(cpuset_cpus="a-b"), r"linux\.cpuset_cpus"),
        (Resources(memory_limit_bytes=1 << 30), r"linux\.memory_swap_limit_in_bytes"),
        (Resources(oom_score_adj=2000), r"oom_score_adj"),
        (Resources(unified={"memory.high": "1"}), r"linux\.unified"),
    ],
)
async def test_limits_that_cannot_be_are_refused_before_any_effect(
    node: Node, world: World, wanted: Resources, field: str
) -> None:
    asked = Resources(memory_limit_bytes=1 << 20, memory_swap_limit_bytes=1 << 21)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    with pytest.raises(InvalidInput, match=field):
        await node.services.containers.update(container_id, wanted)
    assert world.runtime.containers[container_id].resources == []


async def test_a_container_without_swap_stays_without(node: Node, world: World) -> None:
    asked = Resources(memory_limit_bytes=1 << 20, memory_swap_limit_bytes=1 << 20)
    container_id = await node.create(await node.run_pod(), resources=asked)
    await node.services.containers.update(container_id, Resources(memory_limit_bytes=1 << 22))
    both = Resources(memory_limit_bytes=1 << 22, memory_swap_limit_bytes=1 << 22)
    assert world.runtime.containers[container_id].resources == [both]
    assert node.services.queries.container(container_id).resources == both


def test_page_sizes_and_files_are_merged_one_by_one() -> None:
    old = Resources(
        hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=1), HugepageLimit(page_size="1GB", limit_bytes=2)),
        unified={"memory.high": "1", "cpu.weight": "2"},
    )
    new = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=3),), unified={"memory.high": "4"})
    merged = merge(old, new)
    assert {limit.page_size: limit.limit_bytes for limit in merged.hugepage_limits} == {"2MB": 3, "1GB": 2}
    assert merged.unified == {"memory.high": "4", "cpu.weight": "2"}


async def test_hugepage_limits_of_zero_are_dropped_where_nothing_counts_them(node: Node, world: World) -> None:
    zero = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=0),))
    container_id = await node.run_container(await node.run_pod(), resources=zero)
    assert b"hugepageLimits" not in world.runtime.containers[container_id].launch.spec
    await node.services.containers.update(container_id, zero)
    assert world.runtime.containers[container_id].resources == [Resources()]


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
