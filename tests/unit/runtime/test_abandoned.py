"""Execs whose daemon has died, from files alone; real ones are in tests/integration."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch
from isulad_py.runtime.abandoned import Abandoned
from isulad_py.runtime.bundle import Bundles, Launched
from isulad_py.runtime.layout import Layout

ID = ContainerId("abc")


class Bed:
    """A container with one exec, of which there is one process."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(str(folder / "state"))
        self.bundles = Bundles(self.layout, "boot")
        self.abandoned = Abandoned(bundles=self.bundles, layout=self.layout, clock=SystemClock())
        self.group = folder / "freezer/abc/exec-1"
        self.group.mkdir(parents=True)
        self.bundles.write(Launch(id=ID, handler="runc", spec=b"{}"))
        cgroups = {"freezer": str(folder / "freezer/abc"), "unified": str(folder / "unified")}
        self.bundles.write_record(ID, Launched(handler="runc", family="runc", cgroups=cgroups))
        self.pid_file = Path(self.layout.exec_pid_file(ID, "exec-1"))
        Path(self.layout.exec_pid_file(ID, "exec-2")).touch()

    def inside(self, pid: int) -> None:
        (self.group / "cgroup.procs").write_text(f"{pid}\n")


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("named", [True, False])
async def test_a_command_that_is_under_way_is_ended(bed: Bed, sleeper: subprocess.Popen[bytes], *, named: bool) -> None:
    bed.inside(sleeper.pid)
    if named:
        bed.pid_file.write_text(str(sleeper.pid))
    await bed.abandoned.end(ID)
    assert sleeper.wait() == -signal.SIGKILL
    assert bed.bundles.exec_files(ID) == []


async def test_what_an_ended_command_left_goes_back_to_the_container(
    bed: Bed, sleeper: subprocess.Popen[bytes]
) -> None:
    bed.inside(sleeper.pid)
    bed.pid_file.write_text("4194305")
    await bed.abandoned.end(ID)
    assert sleeper.poll() is None
    assert (bed.group.parent / "cgroup.procs").read_text() == str(sleeper.pid)
    assert bed.bundles.exec_files(ID) == []


async def test_another_containers_and_the_unknown_are_left_alone(bed: Bed, tmp_path: Path) -> None:
    foreign = tmp_path / "unified/exec-3"
    foreign.mkdir(parents=True)
    await bed.abandoned.end(ID)
    await bed.abandoned.end(ContainerId("nobody"))
    assert list(foreign.iterdir()) == []
