"""What every ContainerRuntime does: the fake, and the real one (root) with runc or crun, conmon and a busybox root."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import signal
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.container import Processes
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    NotFound,
)
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import ContainerRuntime, ExecCommand, ExecResult, Launch, Remembered
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.fakes.runtime import FakeRuntime
from tests.stand.cgroups import cgroups_named, processes_in, remove_cgroup
from tests.stand.rootfs import make_rootfs, process, spec
from tests.stand.runtimes import HANDLER, RUNTIMES, handlers

FOR_EVER = ("sleep", "1000000")
MIB = 1024 * 1024
LIMIT_FILES = ("cpu.shares", "cpu.weight", "memory.limit_in_bytes", "memory.max")


@dataclass
class Bed:
    """A runtime, and what its containers are made from."""

    runtime: ContainerRuntime
    root: Path
    cgroup_parent: str
    state: Path
    family: str
    """Of the runtime's program."""

    def restarted(self) -> ContainerRuntime:
        """What a new daemon would have over the same machine."""
        return self.runtime if isinstance(self.runtime, FakeRuntime) else real_runtime(self.family, self.state)

    def lose_directory(self) -> None:
        """Somebody clears the state directory while containers run."""
        if isinstance(self.runtime, FakeRuntime):
            self.runtime.lose_directory()
        else:
            shutil.rmtree(self.state)

    def processes(self, container_id: ContainerId) -> int:
        """How many there are beside the first."""
        if isinstance(self.runtime, FakeRuntime):
            return self.runtime.containers[container_id].others
        first = int((self.state / "containers" / container_id / "pid").read_text())
        return len({pid for folder in cgroups_named(container_id) for pid in processes_in(folder)} - {first})

    def limits(self, container_id: ContainerId, processes: Processes) -> dict[str, object]:
        """Of CPU and memory, and the first process's score, as they are by now."""
        if isinstance(self.runtime, FakeRuntime):
            now = self.runtime.containers[container_id].limits
            return {"cpu": now.cpu_shares, "memory": now.memory_limit_bytes, "score": now.oom_score_adj}
        files = [folder / name for folder in cgroups_named(container_id) for name in LIMIT_FILES]
        found: dict[str, object] = {file.name: file.read_text() for file in files if file.exists()}
        return {**found, "score": Path(f"/proc/{processes.pid}/oom_score_adj").read_text()}

    def launch(self, args: Sequence[str], *, own_pids: bool = True, **changes: object) -> Launch:
        container_id = ContainerId(new_id())
        document = spec(args, root=self.root, cgroup=f"{self.cgroup_parent}/{container_id}", own_pids=own_pids)
        fields: dict[str, object] = {"id": container_id, "handler": HANDLER, "spec": document}
        return Launch(**{**fields, **changes})  # type: ignore[arg-type]

    async def created(self, *args: str) -> tuple[ContainerId, Processes]:
        launch = self.launch(args or FOR_EVER)
        return launch.id, await self.runtime.create(launch)

    async def running(self, *args: str) -> tuple[ContainerId, Processes]:
        container_id, processes = await self.created(*args)
        await self.runtime.start(container_id, HANDLER)
        return container_id, processes

    async def run_in(self, container_id: ContainerId, *args: str, timeout_seconds: float | None = None) -> ExecResult:
        document = json.dumps(process(args)).encode()
        command = ExecCommand(id=container_id, handler=HANDLER, process=document, timeout_seconds=timeout_seconds)
        return await self.runtime.exec_sync(command)


def real_runtime(family: str, state: Path) -> OciRuntime:
    return OciRuntime(
        handlers=handlers(family),
        facts=read_facts(),
        clock=SystemClock(),
        options=Options(state=str(state)),
    )


@pytest.fixture(params=["fake", *(pytest.param(name, marks=pytest.mark.root) for name in RUNTIMES)])
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    if request.param == "fake":
        yield Bed(FakeRuntime(handlers=(HANDLER,)), tmp_path, "/test", tmp_path, HANDLER)
        return
    parent = f"t{secrets.token_hex(6)}"
    # Longer than a socket's name may be.
    state = tmp_path / ("long-state-directory-" + "x" * 100)
    runtime = real_runtime(request.param, state)
    made = Bed(runtime, make_rootfs(tmp_path / "rootfs"), f"/{parent}", state, request.param)
    yield made
    for container_id in await made.runtime.present():
        await made.runtime.delete(container_id, HANDLER)
    assert await made.runtime.present() == frozenset()
    for container_id in list(state.glob("containers/*")):
        pytest.fail(f"left behind: {container_id}")
    for folder in cgroups_named(parent, depth=1):
        assert not list(folder.glob("*/")), f"cgroups left in {folder}"
        assert remove_cgroup(folder)


async def test_a_container_goes_from_created_over_running_to_stopped(bed: Bed) -> None:
    container_id, processes = await bed.created()
    assert all((processes.pid, processes.pid_started, processes.monitor_pid, processes.monitor_started))
    assert await bed.runtime.state(container_id, HANDLER) == "created"
    await bed.runtime.start(container_id, HANDLER)
    assert await bed.runtime.state(container_id, HANDLER) == "running"
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    await bed.runtime.wait_exit(container_id, processes)
    assert await bed.runtime.state(container_id, HANDLER) == "stopped"
    await bed.runtime.delete(container_id, HANDLER)
    assert await bed.runtime.state(container_id, HANDLER) == ""


@pytest.mark.parametrize(
    ("args", "code"),
    [(("true",), 0), (("false",), 1), (("sh", "-c", "exit 3"), 3), (("sh", "-c", "echo x; exit 255"), 255)],
)
async def test_exit_codes_are_told(bed: Bed, args: tuple[str, ...], code: int) -> None:
    before = time.time_ns() - 20_000_000  # a file's time has the grain of the kernel's tick
    container_id, processes = await bed.running(*args)
    fact = await bed.runtime.wait_exit(container_id, processes)
    assert (fact.exit_code, fact.reason, fact.oom_killed) == (code, "", False)
    assert before <= fact.finished_at <= time.time_ns()


async def test_a_signal_that_is_not_handled_is_128_and_its_number(bed: Bed) -> None:
    container_id, processes = await bed.running()
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    assert (await bed.runtime.wait_exit(container_id, processes)).exit_code == 137


async def test_a_handler_of_the_container_decides_the_code(bed: Bed) -> None:
    container_id, processes = await bed.running("sh", "-c", "trap 'exit 7' TERM; while true; do sleep 0.01; done")
    waiting = asyncio.ensure_future(bed.runtime.wait_exit(container_id, processes))
    while not waiting.done():  # a signal before the trap is set is lost on a first process
        await bed.runtime.kill(container_id, HANDLER, signal.SIGTERM)
        await asyncio.wait([waiting], timeout=0.05)
    assert (await waiting).exit_code == 7


async def test_what_a_first_process_leaves_running_is_ended(bed: Bed) -> None:
    """Where the PID namespace is not the container's own; also by a daemon that did not see it begin."""
    launch = bed.launch(("sh", "-c", "setsid sleep 9999 & setsid sleep 9999 & exec sleep 1000000"), own_pids=False)
    processes = await bed.runtime.create(launch)
    await bed.runtime.start(launch.id, HANDLER)
    async with asyncio.timeout(20):
        while bed.processes(launch.id) < 2:
            await asyncio.sleep(0.01)
    await bed.runtime.kill(launch.id, HANDLER, signal.SIGKILL)
    fact = await bed.restarted().wait_exit(launch.id, processes)
    assert bed.processes(launch.id) == 0
    assert await bed.runtime.wait_exit(launch.id, processes) == fact


async def test_an_end_is_told_to_every_waiter_and_again_later(bed: Bed) -> None:
    container_id, processes = await bed.running()
    waiters = [asyncio.ensure_future(bed.runtime.wait_exit(container_id, processes)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)
    waiters.pop().cancel()
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    first, second = await asyncio.gather(*waiters)
    assert first == second == await bed.runtime.wait_exit(container_id, processes)


async def test_a_new_daemon_sees_the_container_and_its_end(bed: Bed) -> None:
    container_id, processes = await bed.running()
    later = bed.restarted()
    assert await later.state(container_id, HANDLER) == "running"
    assert await later.present() == {container_id}
    waiting = asyncio.ensure_future(later.wait_exit(container_id, processes))
    await later.kill(container_id, HANDLER, signal.SIGKILL)
    assert (await waiting).exit_code == 137


async def test_a_created_container_can_be_killed(bed: Bed) -> None:
    container_id, processes = await bed.created()
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    assert (await bed.runtime.wait_exit(container_id, processes)).exit_code == 137
    with pytest.raises((FailedPrecondition, HostFailure)):
        await bed.runtime.start(container_id, HANDLER)


async def test_killing_what_has_ended_is_success(bed: Bed) -> None:
    container_id, processes = await bed.running("true")
    await bed.runtime.wait_exit(container_id, processes)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGTERM)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL, everyone=True)


@pytest.mark.parametrize("stage", ["created", "running", "stopped", "paused"])
async def test_delete_removes_a_container_in_any_state_and_can_be_repeated(bed: Bed, stage: str) -> None:
    container_id, processes = await bed.created()
    if stage != "created":
        await bed.runtime.start(container_id, HANDLER)
    if stage == "paused":
        await bed.runtime.pause(container_id, HANDLER)
    if stage == "stopped":
        await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
        await bed.runtime.wait_exit(container_id, processes)
    await bed.runtime.delete(container_id, HANDLER)
    await bed.runtime.delete(container_id, HANDLER)
    assert await bed.runtime.present() == frozenset()
    if not isinstance(bed.runtime, FakeRuntime):
        assert not pidfd.alive(processes.pid, processes.pid_started)
        assert not pidfd.alive(processes.monitor_pid, processes.monitor_started)


async def test_present_and_the_bundle(bed: Bed) -> None:
    assert await bed.runtime.present() == frozenset()
    launch = bed.launch(FOR_EVER)
    await bed.runtime.create(launch)
    assert await bed.runtime.present() == {launch.id}
    assert await bed.runtime.bundle_spec(launch.id) == launch.spec


async def test_a_program_that_is_missing_is_named_and_leaves_nothing(bed: Bed) -> None:
    with pytest.raises(InvalidInput, match=r"create: .*missing-program.*not found"):
        await bed.runtime.create(bed.launch(("missing-program",)))
    assert await bed.runtime.present() == frozenset()


@pytest.mark.parametrize("length", [1000, 3000, 4095, 5000, 12_000])
async def test_a_program_with_a_long_path_is_the_requests_fault(bed: Bed, length: int) -> None:
    path = ("/missing" * length)[:length]
    with pytest.raises(InvalidInput, match="create: "):
        await bed.runtime.create(bed.launch((path,)))
    container_id, _ = await bed.running()
    with pytest.raises(InvalidInput, match="exec /missing"):
        await bed.run_in(container_id, path)


async def test_wrong_input_leaves_nothing(bed: Bed) -> None:
    with pytest.raises(InvalidInput, match="nobody"):
        await bed.runtime.create(bed.launch(FOR_EVER, handler="nobody"))
    with pytest.raises(InvalidInput, match="log_path"):
        await bed.runtime.create(bed.launch(FOR_EVER, log_path="relative/0.log"))
    assert await bed.runtime.present() == frozenset()


async def test_an_id_cannot_be_used_twice_and_the_first_container_lives(bed: Bed) -> None:
    launch = bed.launch(FOR_EVER)
    await bed.runtime.create(launch)
    with pytest.raises(AlreadyExists):
        await bed.runtime.create(launch)
    assert await bed.runtime.state(launch.id, HANDLER) == "created"


async def test_a_cancelled_create_leaves_nothing(bed: Bed) -> None:
    if isinstance(bed.runtime, FakeRuntime):
        bed.runtime.faults.hold("create")
    launch = bed.launch(FOR_EVER)
    creating = asyncio.ensure_future(bed.runtime.create(launch))
    await asyncio.wait([creating], timeout=0.008)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert await bed.runtime.present() == frozenset()


async def test_starting_twice_is_refused(bed: Bed) -> None:
    container_id, _ = await bed.running()
    with pytest.raises(FailedPrecondition):
        await bed.runtime.start(container_id, HANDLER)
    assert await bed.runtime.state(container_id, HANDLER) == "running"


async def test_exec_gives_output_and_exit_code(bed: Bed) -> None:
    container_id, _ = await bed.running()
    assert await bed.run_in(container_id, "true") == ExecResult(exit_code=0, stdout=b"", stderr=b"")
    result = await bed.run_in(container_id, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert result == ExecResult(exit_code=3, stdout=b"out\n", stderr=b"err\n")
    assert (await bed.run_in(container_id, "sh", "-c", "kill -9 $$")).exit_code == 137
    assert (await bed.run_in(container_id, "sh", "-c", "exit 255")).exit_code == 255


async def test_exec_output_is_cut_at_its_limit(bed: Bed) -> None:
    container_id, _ = await bed.running()
    result = await bed.run_in(container_id, "head", "-c", str(17 * MIB), "/dev/zero")
    assert result.exit_code == 0
    assert len(result.stdout) == 16 * MIB


async def test_exec_of_a_missing_program_names_it(bed: Bed) -> None:
    container_id, _ = await bed.running()
    with pytest.raises(InvalidInput, match=r"exec missing-program: .*not found"):
        await bed.run_in(container_id, "missing-program")


async def test_exec_past_its_time_is_ended(bed: Bed) -> None:
    container_id, _ = await bed.running()
    with pytest.raises(DeadlineExceeded, match="sleep"):
        await bed.run_in(container_id, "sleep", "1000000", timeout_seconds=0.1)
    assert (await bed.run_in(container_id, "true")).exit_code == 0


async def test_exec_ends_with_its_container(bed: Bed) -> None:
    container_id, processes = await bed.running()
    execing = asyncio.ensure_future(bed.run_in(container_id, "sleep", "1000000"))
    await asyncio.wait([execing], timeout=0.05)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    await bed.runtime.wait_exit(container_id, processes)
    await asyncio.wait([execing], timeout=30)
    assert execing.done()
    if execing.exception() is None:
        assert execing.result().exit_code == 137


async def test_exec_needs_a_container_that_runs(bed: Bed) -> None:
    container_id, processes = await bed.running()
    await bed.runtime.pause(container_id, HANDLER)
    with pytest.raises(FailedPrecondition):
        await bed.run_in(container_id, "true")
    await bed.runtime.resume(container_id, HANDLER)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    await bed.runtime.wait_exit(container_id, processes)
    with pytest.raises(FailedPrecondition):
        await bed.run_in(container_id, "true")


async def test_pause_and_resume(bed: Bed) -> None:
    container_id, _ = await bed.running()
    await bed.runtime.pause(container_id, HANDLER)
    assert await bed.runtime.state(container_id, HANDLER) == "paused"
    with pytest.raises(FailedPrecondition):
        await bed.runtime.pause(container_id, HANDLER)
    await bed.runtime.resume(container_id, HANDLER)
    assert await bed.runtime.state(container_id, HANDLER) == "running"
    with pytest.raises(FailedPrecondition):
        await bed.runtime.resume(container_id, HANDLER)


async def test_update_of_a_created_and_a_running_container(bed: Bed) -> None:
    container_id, _ = await bed.created()
    await bed.runtime.update(container_id, HANDLER, Resources(memory_limit_bytes=64 * MIB, cpu_shares=512))
    await bed.runtime.start(container_id, HANDLER)
    await bed.runtime.update(container_id, HANDLER, Resources(memory_limit_bytes=128 * MIB))


async def test_an_update_can_be_put_back(bed: Bed) -> None:
    container_id, processes = await bed.running()
    before = bed.limits(container_id, processes)
    wanted = Resources(cpu_shares=256, memory_limit_bytes=64 * MIB, memory_swap_limit_bytes=64 * MIB, oom_score_adj=987)
    put_back = await bed.runtime.update(container_id, HANDLER, wanted)
    changed = bed.limits(container_id, processes)
    assert len(changed) == len(before) == 3
    assert not changed.items() & before.items()
    await put_back()
    assert bed.limits(container_id, processes) == before


async def test_the_unknown_is_not_found_but_to_state_and_delete(bed: Bed) -> None:
    nobody = ContainerId(new_id())
    calls = [
        bed.runtime.start(nobody, HANDLER),
        bed.runtime.kill(nobody, HANDLER, signal.SIGTERM),
        bed.runtime.pause(nobody, HANDLER),
        bed.runtime.resume(nobody, HANDLER),
        bed.runtime.update(nobody, HANDLER, Resources(cpu_shares=2)),
        bed.runtime.reopen_log(nobody),
        bed.runtime.resize(nobody, 80, 24),
        bed.runtime.bundle_spec(nobody),
        bed.run_in(nobody, "true"),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call
    assert await bed.runtime.state(nobody, HANDLER) == ""
    await bed.runtime.delete(nobody, HANDLER)


async def test_the_exit_of_the_unknown_is_unknown(bed: Bed) -> None:
    fact = await bed.runtime.wait_exit(ContainerId(new_id()), Processes())
    assert (fact.exit_code, fact.reason) == (255, "ContainerStatusUnknown")


async def test_a_log_may_have_any_name(bed: Bed, tmp_path: Path) -> None:
    for name in ("\u00fc \u65e5.log", "\x80"):
        launch = bed.launch(("true",), log_path=str(tmp_path / "logs" / name))
        processes = await bed.runtime.create(launch)
        await bed.runtime.start(launch.id, HANDLER)
        assert (await bed.runtime.wait_exit(launch.id, processes)).exit_code == 0


async def test_log_and_terminal_of_a_stopped_container(bed: Bed, tmp_path: Path) -> None:
    launch = bed.launch(("true",), log_path=str(tmp_path / "logs/0.log"))
    processes = await bed.runtime.create(launch)
    await bed.runtime.reopen_log(launch.id)
    await bed.runtime.start(launch.id, HANDLER)
    await bed.runtime.wait_exit(launch.id, processes)
    with pytest.raises(FailedPrecondition, match="monitor"):
        await bed.runtime.resize(launch.id, 80, 24)


async def test_versions_and_features(bed: Bed) -> None:
    versions = await bed.runtime.versions()
    assert versions[HANDLER].startswith(f"{bed.family} version")
    assert versions["monitor"].startswith("conmon version")
    features = await bed.runtime.features(HANDLER)
    assert features.name == HANDLER
    assert features.version
    assert await bed.runtime.monitor_obstacle() == ""
    with pytest.raises(InvalidInput):
        await bed.runtime.features("nobody")


async def test_who_runs_without_a_directory_is_ended_by_what_is_remembered(bed: Bed) -> None:
    launch = bed.launch(FOR_EVER)
    processes = await bed.runtime.create(launch)
    await bed.runtime.start(launch.id, HANDLER)
    bed.lose_directory()
    remembered = Remembered(processes=processes, cgroup_path=f"{bed.cgroup_parent}/{launch.id}")
    with pytest.raises(NotFound):
        await bed.runtime.kill(launch.id, HANDLER, signal.SIGKILL)
    await bed.runtime.kill(launch.id, HANDLER, signal.SIGKILL, remembered=remembered)
    fact = await bed.runtime.wait_exit(launch.id, processes)
    assert (fact.exit_code, fact.reason) == (255, "ContainerStatusUnknown")
    await bed.runtime.delete(launch.id, HANDLER, remembered=remembered)
    await bed.runtime.delete(launch.id, HANDLER, remembered=remembered)


async def test_deletion_without_a_directory_ends_who_runs(bed: Bed) -> None:
    launch = bed.launch(FOR_EVER)
    processes = await bed.runtime.create(launch)
    await bed.runtime.start(launch.id, HANDLER)
    bed.lose_directory()
    remembered = Remembered(processes=processes, cgroup_path=f"{bed.cgroup_parent}/{launch.id}")
    await bed.runtime.delete(launch.id, HANDLER, remembered=remembered)
    assert not pidfd.alive(processes.pid, processes.pid_started)
    assert not pidfd.alive(processes.monitor_pid, processes.monitor_started)


async def test_deletion_finds_the_handler_by_itself(bed: Bed) -> None:
    await bed.running()
    (container_id,) = await bed.runtime.present()
    await bed.runtime.delete(container_id, "")
    assert await bed.runtime.present() == frozenset()
