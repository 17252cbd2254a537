"""A runtime and a monitor that fail, hang or lie: the error says so, and nothing is left (root)."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.errors import DeadlineExceeded, HostFailure
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import ExecCommand, ExecResult, Launch
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.faults.faulty import FaultyProgram
from tests.stand.cgroups import cgroups_named, remove_cgroup
from tests.stand.rootfs import make_rootfs, process, spec

pytestmark = pytest.mark.root

FOR_EVER = ("sleep", "1000000")


@dataclass
class Bed:
    path: Path
    parent: str
    runc: FaultyProgram
    conmon: FaultyProgram

    def runtime(self, seconds: float = 20.0) -> OciRuntime:
        return OciRuntime(
            handlers={"runc": RuntimeHandler(name="runc", path=str(self.runc.path))},
            facts=read_facts(),
            clock=SystemClock(),
            options=Options(
                state=str(self.path / "state"),
                monitor=str(self.conmon.path),
                create_seconds=seconds,
                command_seconds=seconds,
            ),
        )

    def launch(self) -> Launch:
        container_id = ContainerId(new_id())
        document = spec(FOR_EVER, root=self.path / "rootfs", cgroup=f"/{self.parent}/{container_id}")
        return Launch(id=container_id, handler="runc", spec=document)

    async def running(self) -> ContainerId:
        launch = self.launch()
        runtime = self.runtime()
        await runtime.create(launch)
        await runtime.start(launch.id, "runc")
        return launch.id

    def nothing_is_left(self) -> bool:
        """Of any container that is not present any more."""
        bundles = [str(path) for path in (self.path / "state/containers").glob("*")]
        cgroups = [path for folder in cgroups_named(self.parent, depth=1) for path in folder.glob("*/")]
        programs = pidfd.find_by_arguments([str(self.runc.folder)]) | pidfd.find_by_arguments([str(self.conmon.folder)])
        return not bundles and not cgroups and not programs


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    make_rootfs(tmp_path / "rootfs")
    made = Bed(
        tmp_path,
        f"t{secrets.token_hex(6)}",
        FaultyProgram(tmp_path / "faulty-runtime", "runc"),
        FaultyProgram(tmp_path / "faulty-monitor", "conmon"),
    )
    yield made
    made.runc.heal()
    runtime = made.runtime()
    for container_id in await runtime.present():
        await runtime.delete(container_id, "runc")
    assert made.nothing_is_left()
    assert all(remove_cgroup(folder) for folder in cgroups_named(made.parent, depth=1))


async def run_in(runtime: OciRuntime, container_id: ContainerId, *args: str, seconds: float = 20.0) -> ExecResult:
    document = json.dumps(process(args)).encode()
    return await runtime.exec_sync(
        ExecCommand(id=container_id, handler="runc", process=document, timeout_seconds=seconds)
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no room on the moon", "no room on the moon"),
        ("after-no room on the moon", "no room on the moon"),
        ("rubbish", "rubbish"),
        ("silent", "without a report"),
        ("killed", "without a report"),
        ("rubbish-and-success", "without a report"),
    ],
)
async def test_a_runtime_that_fails_to_create(bed: Bed, fault: str, words: str) -> None:
    bed.runc.fail("create", 1, fault)
    launch = bed.launch()
    with pytest.raises(HostFailure, match=words) as caught:
        await bed.runtime().create(launch)
    assert str(caught.value).startswith("create: ")
    assert bed.nothing_is_left()
    await bed.runtime().create(bed.launch())


async def test_a_runtime_that_is_killed_when_the_container_is_made(bed: Bed) -> None:
    """conmon waits for its last words then, on a pipe that the container holds: until the deadline."""
    bed.runc.fail("create", 1, "after-killed")
    with pytest.raises(DeadlineExceeded):
        await bed.runtime(0.5).create(bed.launch())
    assert bed.nothing_is_left()


@pytest.mark.parametrize("fault", ["hang", "after-hang", "fork-and-hang"])
@pytest.mark.parametrize("program", ["runc", "conmon"])
async def test_one_that_hangs_in_create_is_ended(bed: Bed, program: str, fault: str) -> None:
    if program == "runc":
        bed.runc.fail("create", 1, fault)
    else:
        bed.conmon.fail("monitor", 1, fault)
    runtime = bed.runtime(0.5)
    await runtime.versions()
    bed.conmon.fail("monitor", 2, fault)
    with pytest.raises(DeadlineExceeded, match=r"create: no container within 0\.5 s"):
        await runtime.create(bed.launch())
    assert bed.nothing_is_left()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("report-rubbish", "the monitor reported"),
        ("report-nobody", "ended at once"),
        ("report-nothing", "without a word"),
        ("rubbish", "rubbish"),
        ("silent", r"without a report \(exit status 1\)"),
        ("killed", r"without a report \(exit status -9\)"),
        ("rubbish-and-success", r"without a report \(exit status 0\)"),
    ],
)
async def test_a_monitor_that_fails_or_lies(bed: Bed, fault: str, words: str) -> None:
    bed.conmon.fail("monitor", 0, fault)
    with pytest.raises(HostFailure, match=words):
        await bed.runtime().create(bed.launch())
    assert bed.nothing_is_left()


async def test_a_missing_runtime_or_monitor_is_named_before_anything_is_made(bed: Bed) -> None:
    bed.conmon.path.unlink()
    with pytest.raises(HostFailure, match="monitor: no such program"):
        await bed.runtime().create(bed.launch())
    bed.runc.path.unlink()
    with pytest.raises(HostFailure, match="runtime runc: no such program"):
        await bed.runtime().create(bed.launch())
    assert bed.nothing_is_left()
    versions = await bed.runtime().versions()
    assert "no such program" in versions["runc"]
    assert "no such program" in versions["monitor"]


@pytest.mark.parametrize("command", ["start", "pause", "update"])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [("it rains", HostFailure), ("rubbish", HostFailure), ("silent", HostFailure), ("hang", DeadlineExceeded)],
)
async def test_a_command_that_fails(bed: Bed, command: str, fault: str, kind: type[Exception]) -> None:
    launch = bed.launch()
    runtime = bed.runtime()
    await runtime.create(launch)
    if command != "start":
        await runtime.start(launch.id, "runc")
    bed.runc.fail(command, 0, fault)
    faulty = bed.runtime(0.3 if fault == "hang" else 20.0)
    with pytest.raises(kind, match=f"{command}: .*{'no answer' if fault == 'hang' else ''}"):
        if command == "start":
            await faulty.start(launch.id, "runc")
        elif command == "pause":
            await faulty.pause(launch.id, "runc")
        else:
            await faulty.update(launch.id, "runc", Resources(cpu_shares=2))
    assert await runtime.state(launch.id, "runc") == ("created" if command == "start" else "running")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no exec today", "no exec today"),
        ("rubbish", "rubbish"),
        ("silent", "the runtime exited with 1"),
        ("killed", "the runtime exited with -9"),
        ("rubbish-and-success", "left without naming a process"),
        ("after-it has begun", "it has begun"),
    ],
)
async def test_a_runtime_that_fails_to_exec(bed: Bed, fault: str, words: str) -> None:
    container_id = await bed.running()
    bed.runc.fail("exec", 1, fault)
    runtime = bed.runtime()
    with pytest.raises(HostFailure, match=f"exec sleep: .*{words}"):
        await run_in(runtime, container_id, *FOR_EVER)
    assert (await run_in(runtime, container_id, "true")).exit_code == 0
    listed = await run_in(runtime, container_id, "sh", "-c", "ps | grep -c '[s]leep'")
    assert listed.stdout == b"1\n"


@pytest.mark.parametrize("fault", ["hang", "after-hang", "fork-and-hang"])
async def test_a_runtime_that_hangs_in_exec_is_ended_with_all_it_started(bed: Bed, fault: str) -> None:
    container_id = await bed.running()
    bed.runc.fail("exec", 1, fault)
    runtime = bed.runtime()
    with pytest.raises(DeadlineExceeded, match="exec sleep"):
        await run_in(runtime, container_id, *FOR_EVER, seconds=0.4)
    assert pidfd.find_by_arguments([str(bed.runc.folder), "exec"]) == {}
    listed = await run_in(runtime, container_id, "sh", "-c", "ps | grep -c '[s]leep'")
    assert listed.stdout == b"1\n"


@pytest.mark.parametrize("fault", ["I will not", "rubbish", "silent", "killed", "hang"])
async def test_a_container_that_cannot_be_deleted_stays_present_until_it_can(bed: Bed, fault: str) -> None:
    container_id = await bed.running()
    bed.runc.fail("delete", 1, fault)
    runtime = bed.runtime(0.3 if fault == "hang" else 20.0)
    with pytest.raises((HostFailure, DeadlineExceeded), match="delete: "):
        await runtime.delete(container_id, "runc")
    assert await runtime.present() == {container_id}
    await runtime.delete(container_id, "runc")
    assert bed.nothing_is_left()


async def test_a_runtime_that_only_says_it_has_deleted_leaves_nothing_either(bed: Bed) -> None:
    container_id = await bed.running()
    bed.runc.fail("delete", 1, "rubbish-and-success")
    await bed.runtime().delete(container_id, "runc")
    assert bed.nothing_is_left()


async def test_a_cancelled_create_ends_a_runtime_that_hangs(bed: Bed) -> None:
    bed.runc.fail("create", 1, "hang")
    creating = asyncio.ensure_future(bed.runtime().create(bed.launch()))
    while not bed.runc.calls("create"):
        await asyncio.wait([creating], timeout=0.01)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert bed.nothing_is_left()


async def test_features_and_versions_that_cannot_be_read_are_none(bed: Bed) -> None:
    bed.runc.fail("features", 0, "rubbish-and-success")
    features = await bed.runtime().features("runc")
    assert not features.seccomp
    assert features.version
    bed.runc.fail("--version", 0, "silent")
    assert "exited with 1" in (await bed.runtime().versions())["runc"]


async def test_signals_and_states_take_no_program(bed: Bed) -> None:
    container_id = await bed.running()
    runtime = bed.runtime()
    before = (bed.runc.folder / "calls").read_text()
    assert await runtime.state(container_id, "runc") == "running"
    await runtime.kill(container_id, "runc", signal.SIGKILL)
    assert (bed.runc.folder / "calls").read_text() == before
