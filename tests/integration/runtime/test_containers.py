"""What only real runtimes and conmon can show: logs, memory shortage, monitors that die, processes that hide (root)."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.container import Processes
from isulad_py.model.errors import DeadlineExceeded
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import ExecCommand, ExecResult, Launch
from isulad_py.runtime import members
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.stand.cgroups import cgroups_named, hierarchies, make_cgroup, processes_in, remove_cgroup
from tests.stand.rootfs import make_rootfs, process, spec
from tests.stand.runtimes import HANDLER, RUNTIMES, handlers

pytestmark = pytest.mark.root

MIB = 1024 * 1024
EAT = ("sh", "-c", "head -c 100000000 /dev/zero | tail -c 100000000 >/dev/null; sleep 1000000")
"""The pipe's reader keeps all it was given: it is killed, the first process goes on."""


@dataclass
class Bed:
    path: Path
    family: str
    parent: str = field(default_factory=lambda: f"t{secrets.token_hex(6)}")

    def __post_init__(self) -> None:
        self.root = make_rootfs(self.path / "rootfs")
        self.mounts = read_facts().cgroup_mounts
        self.runtime = self.new_runtime()

    def new_runtime(self) -> OciRuntime:
        return OciRuntime(
            handlers=handlers(self.family),
            facts=read_facts(),
            clock=SystemClock(),
            options=Options(state=str(self.path / "state")),
        )

    @property
    def log(self) -> Path:
        return self.path / "logs/0.log"

    def launch(self, args: Sequence[str], *, own_pids: bool = True, memory_bytes: int = 0, **changes: object) -> Launch:
        container_id = ContainerId(new_id())
        document = spec(
            args,
            root=self.root,
            cgroup=f"/{self.parent}/{container_id}",
            own_pids=own_pids,
            memory_bytes=memory_bytes,
            terminal=bool(changes.get("terminal")),
        )
        fields: dict[str, object] = {
            "id": container_id, "handler": HANDLER, "spec": document, "log_path": str(self.log),
        }  # fmt: skip
        return Launch(**{**fields, **changes})  # type: ignore[arg-type]

    async def run(self, launch: Launch) -> Processes:
        processes = await self.runtime.create(launch)
        await self.runtime.start(launch.id, HANDLER)
        return processes

    async def exec(self, container_id: ContainerId, script: str, seconds: float | None = None) -> ExecResult:
        document = json.dumps(process(("sh", "-c", script))).encode()
        command = ExecCommand(id=container_id, handler=HANDLER, process=document, timeout_seconds=seconds)
        return await self.runtime.exec_sync(command)

    async def logged(self, pattern: str) -> list[str]:
        """Waits until the log matches."""
        async with asyncio.timeout(20):
            while True:
                text = self.log.read_text() if self.log.exists() else ""
                if re.search(pattern, text, re.MULTILINE):
                    return text.splitlines()
                await asyncio.sleep(0.005)

    def cgroup_processes(self, container_id: ContainerId) -> set[int]:
        return processes_in(Path(self.mounts.get("pids", self.mounts.get("unified", ""))) / self.parent / container_id)


@pytest.fixture(params=RUNTIMES)
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    made = Bed(tmp_path, request.param)
    yield made
    runtime = made.new_runtime()
    for container_id in await runtime.present():
        await runtime.delete(container_id, HANDLER)
    left = [folder for folder in cgroups_named(made.parent, depth=1) if not remove_cgroup(folder)]
    assert left == []


async def test_the_log_has_the_form_that_kubelets_read(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "echo out; echo err >&2; echo -n rest"))
    await bed.runtime.wait_exit(launch.id, await bed.run(launch))
    lines = bed.log.read_text().splitlines()
    assert sorted(line.split(" ", 1)[1] for line in lines) == ["stderr F err", "stdout F out", "stdout P rest"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}[+-]\d\d:\d\d std", line) for line in lines)


async def test_a_reopened_log_has_no_gap(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "i=0; while true; do i=$((i+1)); echo $i; done"))
    await bed.run(launch)
    await bed.logged(" F 100$")
    parts = []
    for number in range(3):
        parts.append(bed.path / f"{number}.log")
        bed.log.rename(parts[-1])
        await bed.runtime.reopen_log(launch.id)
        assert bed.log.exists()
        await bed.logged(" F ")
    await bed.runtime.delete(launch.id, HANDLER)
    lines = "".join(part.read_text() for part in [*parts, bed.log]).splitlines()
    text = ""
    for line in lines:
        _, _, kind, words = line.split(" ", 3)
        text += words + ("\n" if kind == "F" else "")  # P: the rest of the line follows
    numbers = [int(word) for word in text.splitlines(keepends=True) if word.endswith("\n")]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_reopening_a_log_that_was_not_moved_keeps_it(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "echo one; sleep 1000000"))
    await bed.run(launch)
    await bed.logged("one")
    await bed.runtime.reopen_log(launch.id)
    assert "one" in bed.log.read_text()


async def test_a_log_directory_may_have_a_colon_in_its_name(bed: Bed) -> None:
    path = bed.path / "a:b" / "0.log"
    launch = bed.launch(("echo", "hello"), log_path=str(path))
    await bed.runtime.wait_exit(launch.id, await bed.run(launch))
    assert path.read_text().endswith("stdout F hello\n")


async def test_a_terminal_is_resized(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "while true; do stty size; sleep 0.05; done"), terminal=True)
    await bed.run(launch)
    await bed.logged("^.* [FP] ")
    await asyncio.gather(*(bed.runtime.resize(launch.id, width, 50) for width in (81, 82, 83)))
    await bed.logged(r" 50 83\r?$")


async def test_a_container_that_ate_its_memory_is_told_so(bed: Bed) -> None:
    launch = bed.launch(("dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1"), memory_bytes=16 * MIB)
    fact = await bed.runtime.wait_exit(launch.id, await bed.run(launch))
    assert (fact.exit_code, fact.oom_killed) == (137, True)


async def test_one_that_was_killed_is_not_and_one_that_lost_a_child_is(bed: Bed) -> None:
    killed = bed.launch(("sleep", "1000000"), memory_bytes=16 * MIB)
    processes = await bed.run(killed)
    await bed.runtime.kill(killed.id, HANDLER, signal.SIGKILL)
    fact = await bed.runtime.wait_exit(killed.id, processes)
    assert (fact.exit_code, fact.oom_killed) == (137, False)
    eater = bed.launch(
        ("sh", "-c", "dd if=/dev/zero of=/dev/null bs=100M count=1; exit 0"), memory_bytes=16 * MIB, log_path=""
    )
    fact = await bed.runtime.wait_exit(eater.id, await bed.run(eater))
    assert (fact.exit_code, fact.oom_killed) == (0, True)


@pytest.mark.skipif("memory" not in read_facts().cgroup_mounts, reason="of the v1 eventfd only")
async def test_the_shortage_of_the_pod_is_not_blamed_on_every_container(bed: Bed) -> None:
    make_cgroup(f"/{bed.parent}")
    limit = Path(bed.mounts["memory"], bed.parent, "memory.limit_in_bytes")
    limit.write_text(str(24 * MIB))
    quiet = bed.launch(("sleep", "1000000"))
    processes = await bed.run(quiet)
    eater = bed.launch(("dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1"), log_path="")
    assert (await bed.runtime.wait_exit(eater.id, await bed.run(eater))).oom_killed
    await bed.runtime.kill(quiet.id, HANDLER, signal.SIGKILL)
    assert not (await bed.runtime.wait_exit(quiet.id, processes)).oom_killed
    limit.write_text("-1")


async def test_a_container_lives_on_without_its_monitor(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    processes = await bed.run(launch)
    assert pidfd.send(processes.monitor_pid, processes.monitor_started, signal.SIGKILL)
    waiting = asyncio.ensure_future(bed.new_runtime().wait_exit(launch.id, processes))
    await pidfd.wait_end(processes.monitor_pid, processes.monitor_started)
    assert await bed.runtime.state(launch.id, HANDLER) == "running"
    assert (await bed.exec(launch.id, "exit 4")).exit_code == 4
    assert not waiting.done()
    await bed.runtime.kill(launch.id, HANDLER, signal.SIGKILL)
    fact = await waiting
    assert (fact.exit_code, fact.reason) == (255, "ContainerStatusUnknown")


async def test_an_end_while_nobody_watches_is_told_later(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "exit 42"))
    processes = await bed.run(launch)
    await pidfd.wait_end(processes.monitor_pid, processes.monitor_started)
    fact = await bed.new_runtime().wait_exit(launch.id, processes)
    assert (fact.exit_code, fact.reason) == (42, "")


async def test_the_monitor_is_accounted_to_the_pod(bed: Bed) -> None:
    make_cgroup(f"/{bed.parent}")
    launch = bed.launch(("sleep", "1000000"), monitor_cgroup=f"/{bed.parent}")
    processes = await bed.run(launch)
    groups = members.read_membership(processes.monitor_pid, bed.mounts)
    v1 = [key for key in groups if key != "unified"]
    wanted = [f"{bed.mounts[key]}/{bed.parent}" for key in v1 or groups]
    assert all(
        group.startswith(start) for group, start in zip([groups[key] for key in v1 or groups], wanted, strict=True)
    )
    await bed.runtime.delete(launch.id, HANDLER)
    assert [path for hierarchy in hierarchies() for path in (hierarchy.mountpoint / bed.parent).glob("*/")] == []


async def test_a_monitor_whose_cgroup_is_missing_stays_where_it_is(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"), monitor_cgroup=f"/{bed.parent}-nowhere")
    await bed.run(launch)
    assert cgroups_named(f"{bed.parent}-nowhere", depth=1) == []


@pytest.mark.parametrize(
    "script",
    [
        "sleep 1000000",
        "sleep 1000000 & sleep 1000000",
        "(sleep 1000000 &); sleep 1000000",
        "(setsid sleep 1000000 &); sleep 1000000",
        "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; while true; do sleep 0.01; done' &) ; sleep 1000000",
    ],
)
async def test_an_exec_past_its_time_takes_its_whole_tree_along(bed: Bed, script: str) -> None:
    launch = bed.launch(("sh", "-c", "while true; do sleep 0.1; done"))
    await bed.run(launch)
    before = len(bed.cgroup_processes(launch.id))
    with pytest.raises(DeadlineExceeded, match=r"exec sh: no end within 0\.3 s"):
        await bed.exec(launch.id, script, seconds=0.3)
    assert before <= 2
    assert len(bed.cgroup_processes(launch.id)) <= 2
    assert (await bed.exec(launch.id, "ps -o comm,args | grep '[s]leep 1000000' || true")).stdout == b""


async def test_a_cancelled_exec_ends_its_processes(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    await bed.run(launch)
    execing = asyncio.ensure_future(
        bed.exec(launch.id, "(setsid sleep 1000000 &); echo on >/proc/1/fd/1; sleep 100000")
    )
    await bed.logged("on$")
    execing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await execing
    assert len(bed.cgroup_processes(launch.id)) == 1


async def test_the_next_daemon_ends_a_command_that_nobody_reads(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    await bed.run(launch)
    await bed.exec(launch.id, "sleep 1000001 >/dev/null 2>&1 &")
    execing = asyncio.ensure_future(
        bed.exec(launch.id, "(setsid sleep 1000000 &); echo on >/proc/1/fd/1; sleep 100000")
    )
    await bed.logged("on$")
    await bed.new_runtime().end_commands(launch.id)
    assert (await execing).exit_code == 128 + signal.SIGKILL
    assert len(bed.cgroup_processes(launch.id)) == 2
    await bed.new_runtime().end_commands(ContainerId(new_id()))


async def test_what_an_exec_leaves_running_holds_nobody_up_and_stays_in_the_container(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    await bed.run(launch)
    result = await bed.exec(launch.id, "setsid sleep 1000000 & echo done")
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert len(bed.cgroup_processes(launch.id)) == 2
    made = [path for hierarchy in hierarchies() for path in (hierarchy.mountpoint / bed.parent / launch.id).glob("*/")]
    assert made == []
    await bed.runtime.delete(launch.id, HANDLER)
    assert bed.cgroup_processes(launch.id) == set()


async def test_an_exec_leaks_no_descriptor_into_the_container(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    await bed.run(launch)
    before = len(list(Path("/proc/self/fd").iterdir()))
    listed = (await bed.exec(launch.id, "ls /proc/$$/fd; true")).stdout.split()
    assert set(listed) <= {b"0", b"1", b"2"}
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_fifty_execs_at_once(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"))
    await bed.run(launch)
    results = await asyncio.gather(*(bed.exec(launch.id, f"echo {number}; exit {number}") for number in range(50)))
    assert [(result.exit_code, result.stdout) for result in results] == [(n, f"{n}\n".encode()) for n in range(50)]


async def test_in_a_shared_pid_namespace_the_others_end_with_the_first(bed: Bed) -> None:
    launch = bed.launch(("sh", "-c", "setsid sleep 1000000 & setsid sleep 1000000 & sleep 1000000"), own_pids=False)
    processes = await bed.run(launch)
    while len(bed.cgroup_processes(launch.id)) < 3:
        await asyncio.sleep(0.005)
    await bed.runtime.kill(launch.id, HANDLER, signal.SIGKILL)
    await bed.runtime.wait_exit(launch.id, processes)
    assert bed.cgroup_processes(launch.id) == set()
    other = bed.launch(("sh", "-c", "setsid sleep 1000000 & sleep 1000000"), own_pids=False, log_path="")
    await bed.run(other)
    while len(bed.cgroup_processes(other.id)) < 2:
        await asyncio.sleep(0.005)
    left = bed.cgroup_processes(other.id)
    await bed.runtime.delete(other.id, HANDLER)
    assert not any(Path(f"/proc/{pid}/root").exists() for pid in left)


async def test_limits_are_updated(bed: Bed) -> None:
    launch = bed.launch(("sleep", "1000000"), memory_bytes=16 * MIB)
    await bed.run(launch)
    await bed.runtime.update(launch.id, HANDLER, Resources(memory_limit_bytes=64 * MIB))
    await bed.runtime.update(launch.id, HANDLER, Resources(memory_limit_bytes=128 * MIB, memory_swap_limit_bytes=-1))
    await bed.runtime.update(launch.id, HANDLER, Resources(cpu_shares=256))
    if "memory" in bed.mounts:
        folder = Path(bed.mounts["memory"], bed.parent, launch.id)
        assert int((folder / "memory.limit_in_bytes").read_text()) == 128 * MIB
    if "cpu" in bed.mounts:
        assert int(Path(bed.mounts["cpu"], bed.parent, launch.id, "cpu.shares").read_text()) == 256
