from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from isulad_py.host import pidfd
from isulad_py.model.container import Processes
from isulad_py.model.errors import HostFailure
from isulad_py.model.ids import ContainerId
from isulad_py.model.resources import Resources
from isulad_py.runtime.bundle import Bundles, Launched
from isulad_py.runtime.layout import Layout
from isulad_py.runtime.programs import Call
from isulad_py.runtime.update import Updates

ONE = ContainerId("c" * 64)


class Runtime:
    """Programs of which one writes the CPU shares, and then may fail or hang."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.error: HostFailure | None = None
        self.hangs = False
        self.systemd = False
        self.shares: list[int] = []
        self.written = asyncio.Event()

    def by_systemd(self, handler: str) -> bool:
        assert handler == "runc"
        return self.systemd

    async def call(self, call: Call) -> bytes:
        assert call.words == ("update", "--resources", "-", ONE)
        shares = msgspec.json.decode(call.stdin or b"").get("cpu", {}).get("shares")
        if shares:
            (self.folder / "cpu.shares").write_text(str(shares))
            self.shares.append(shares)
        self.written.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return b""


@pytest.fixture
def process() -> Iterator[int]:
    child = subprocess.Popen(["sleep", "1000"])
    yield child.pid
    child.kill()
    child.wait()


@pytest.fixture
def runtime(tmp_path: Path, process: int) -> Runtime:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.shares").write_text("1024\n")
    (tmp_path / "pids").mkdir()
    (tmp_path / "pids/cgroup.procs").write_text(f"{process}\n")
    bundles = bundles_in(tmp_path)
    Path(Layout(str(tmp_path)).bundle(ONE)).mkdir(parents=True)
    bundles.write_record(
        ONE,
        Launched(
            handler="runc",
            processes=Processes(pid=process, pid_started=pidfd.start_time(process)),
            cgroups={"cpu": str(tmp_path / "cpu"), "pids": str(tmp_path / "pids")},
        ),
    )
    return Runtime(tmp_path / "cpu")


def bundles_in(folder: Path) -> Bundles:
    return Bundles(Layout(str(folder)), "boot")


def updates(runtime: Runtime) -> Updates:
    return Updates(programs=runtime, bundles=bundles_in(runtime.folder.parent))  # type: ignore[arg-type]


def shares(runtime: Runtime) -> str:
    return (runtime.folder / "cpu.shares").read_text().strip()


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


async def test_all_of_it_can_be_put_back(runtime: Runtime, process: int) -> None:
    before = score(process)
    put_back = await updates(runtime).run(ONE, "runc", Resources(cpu_shares=7, oom_score_adj=950))
    assert (shares(runtime), score(process)) == ("7", 950)
    await put_back()
    assert (shares(runtime), score(process)) == ("1024", before)


async def test_on_version_2_the_scores_are_put_back_too(tmp_path: Path, runtime: Runtime, process: int) -> None:
    """A runtime could put back the files alone: a score is in none of them."""
    group = tmp_path / "group"
    group.mkdir()
    for name, text in {"cgroup.procs": str(process), "cpu.weight": "39", "memory.max": "max"}.items():
        (group / name).write_text(f"{text}\n")
    launched = Launched(
        handler="runc",
        processes=Processes(pid=process, pid_started=pidfd.start_time(process)),
        cgroups={"unified": str(group)},
    )
    bundles_in(tmp_path).write_record(ONE, launched)
    before = score(process)
    put_back = await updates(runtime).run(ONE, "runc", Resources(cpu_shares=7, oom_score_adj=950))
    assert score(process) == 950
    (group / "cpu.weight").write_text("1\n")
    await put_back()
    assert ((group / "cpu.weight").read_text().strip(), score(process)) == ("39", before)


async def test_half_of_it_is_put_back(runtime: Runtime, process: int) -> None:
    runtime.error = HostFailure("update: refused")
    before = score(process)
    with pytest.raises(HostFailure, match="refused"):
        await updates(runtime).run(ONE, "runc", Resources(cpu_shares=7, oom_score_adj=950))
    assert (shares(runtime), score(process)) == ("1024", before)


async def test_systemd_is_told_what_was_put_back_and_the_files_are_written_although_it_fails(runtime: Runtime) -> None:
    runtime.error, runtime.systemd = HostFailure("update: refused"), True
    with pytest.raises(HostFailure, match="refused"):
        await updates(runtime).run(ONE, "runc", Resources(cpu_shares=7))
    assert runtime.shares == [7, 1024]
    assert shares(runtime) == "1024"


async def test_a_score_that_is_refused_puts_the_limits_back(runtime: Runtime) -> None:
    with pytest.raises(HostFailure, match=r"linux\.oom_score_adj of process"):
        await updates(runtime).run(ONE, "runc", Resources(cpu_shares=7, oom_score_adj=5000))
    assert shares(runtime) == "1024"


async def test_a_caller_that_goes_away_changes_nothing(runtime: Runtime) -> None:
    runtime.hangs = True
    changing = asyncio.ensure_future(updates(runtime).run(ONE, "runc", Resources(cpu_shares=7)))
    await runtime.written.wait()
    changing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await changing
    assert shares(runtime) == "1024"
