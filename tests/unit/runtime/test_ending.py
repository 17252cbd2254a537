"""How ends are told and what is cleared, from files alone; real processes are in tests/contract."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.clock import SystemClock
from isulad_py.model.container import Processes
from isulad_py.model.errors import HostFailure, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch, Remembered
from isulad_py.runtime.bundle import Bundles, Launched
from isulad_py.runtime.ending import Endings, note_failure
from isulad_py.runtime.layout import Layout
from isulad_py.runtime.programs import Programs
from tests.fakes.oci_programs import SimulatedPrograms

ID = ContainerId("abc")


class Bed:
    def __init__(self, folder: Path) -> None:
        self.layout = Layout(str(folder / "state"))
        self.bundles = Bundles(self.layout, "boot")
        simulated = SimulatedPrograms(folder)
        programs = Programs(
            handlers=simulated.handlers, monitor=str(folder / "monitor"), layout=self.layout, command_seconds=20
        )
        self.mounts = {"pids": str(folder / "cgroup")}
        self.endings = Endings(
            programs=programs,
            bundles=self.bundles,
            layout=self.layout,
            cgroup_mounts=self.mounts,
            clock=SystemClock(),
            kmsg=str(folder / "kmsg"),
        )

    def container(self, cgroups: dict[str, str] | None = None, **paths: str) -> None:
        """One whose processes have ended long ago."""
        path = paths.get("cgroup", "")
        spec = f'{{"linux":{{"cgroupsPath":"{path}"}}}}'.encode()
        self.bundles.write(Launch(id=ID, handler="runc", spec=spec))
        if cgroups is not None:
            self.bundles.write_record(ID, Launched(handler="runc", family="runc", cgroups=cgroups))

    def exits(self, code: str) -> None:
        Path(self.layout.exit_file(ID)).write_text(code)


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


async def test_the_monitors_word_counts(bed: Bed) -> None:
    bed.container({})
    bed.exits("3")
    fact = await bed.endings.wait_exit(ID, Processes())
    assert (fact.exit_code, fact.reason, fact.oom_killed) == (3, "", False)
    assert fact.finished_at == Path(bed.layout.exit_file(ID)).stat().st_mtime_ns


async def test_no_word_is_unknown(bed: Bed) -> None:
    bed.container({})
    before = time.time_ns()
    fact = await bed.endings.wait_exit(ID, Processes())
    assert (fact.exit_code, fact.reason) == (255, "ContainerStatusUnknown")
    assert fact.finished_at >= before
    bed.exits("-1")
    assert (await bed.endings.wait_exit(ID, Processes())).reason == "ContainerStatusUnknown"


@pytest.mark.parametrize(
    ("code", "kills", "marked", "told"),
    [
        ("137", 1, False, True),
        ("137", 0, True, False),
        ("137", None, True, True),
        ("137", None, False, False),
        ("0", 1, True, True),
        ("0", 0, True, False),
        ("1", 2, True, True),
    ],
)
async def test_memory_shortage(
    bed: Bed, tmp_path: Path, code: str, kills: int | None, *, marked: bool, told: bool
) -> None:
    group = tmp_path / "memory"
    group.mkdir()
    if kills is not None:
        (group / "memory.oom_control").write_text(f"oom_kill {kills}\n")
    bed.container({"memory": str(group)})
    bed.exits(code)
    if marked:
        Path(bed.layout.oom_file(ID)).touch()
    assert (await bed.endings.wait_exit(ID, Processes())).oom_killed is told


@pytest.mark.parametrize(
    ("cgroup", "told"), [(f"/pods.slice/cri-{ID}.scope", True), ("/pods.slice/cri-other.scope", False)]
)
async def test_memory_shortage_of_a_cgroup_that_is_gone(bed: Bed, tmp_path: Path, cgroup: str, *, told: bool) -> None:
    bed.container({"unified": str(tmp_path / "gone")})
    bed.exits("0")
    (tmp_path / "kmsg").write_text(f"6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg={cgroup},task=dd,pid=1\n")
    assert (await bed.endings.wait_exit(ID, Processes())).oom_killed is told


async def test_deletion_clears_cgroups_that_bear_the_id_and_no_others(bed: Bed, tmp_path: Path) -> None:
    own, shared = tmp_path / "pods/abc", tmp_path / "pods/shared"
    for folder in (own / "below", shared):
        folder.mkdir(parents=True)
    bed.container({"pids": str(own), "memory": str(shared)})
    await bed.endings.delete(ID, "runc")
    assert not own.exists()
    assert shared.exists()
    assert bed.bundles.present() == frozenset()


@pytest.mark.parametrize(
    ("told", "folder"), [("/pods/abc", "pods/abc"), ("a-b.slice:isulad:abc", "a.slice/a-b.slice/isulad-abc.scope")]
)
async def test_deletion_of_the_half_made_goes_by_the_spec(bed: Bed, tmp_path: Path, told: str, folder: str) -> None:
    own = tmp_path / "cgroup" / folder
    own.mkdir(parents=True)
    bed.container(cgroup=told)
    await bed.endings.delete(ID, "runc")
    await bed.endings.delete(ID, "runc")
    assert not own.exists()
    assert bed.bundles.present() == frozenset()


async def test_deletion_asks_the_runtime_only_where_it_has_something(bed: Bed) -> None:
    bed.container({})
    state = Path(bed.layout.runtime_state("runc", ID))
    state.mkdir()
    (state / "state.json").write_text("4194305")
    await bed.endings.delete(ID, "runc")
    assert not state.exists()


@pytest.mark.parametrize("handler", ["", "runc"])
async def test_deletion_finds_the_handler_by_itself(bed: Bed, handler: str) -> None:
    bed.container({})
    state = Path(bed.layout.runtime_state("runc", ID))
    state.mkdir()
    (state / "state.json").write_text("4194305")
    await bed.endings.delete(ID, handler)
    assert not state.exists()
    assert bed.bundles.present() == frozenset()


async def test_a_handler_that_was_taken_out_of_the_configuration_leaves_files_only(bed: Bed) -> None:
    bed.bundles.write(Launch(id=ID, handler="gone", spec=b"{}"))
    bed.bundles.write_record(ID, Launched(handler="gone", family="runc"))
    Path(bed.layout.runtime_state("gone", ID)).mkdir()
    await bed.endings.delete(ID, "gone")
    assert bed.bundles.present() == frozenset()


async def test_who_has_lost_its_bundle_is_ended_by_what_is_remembered(bed: Bed, tmp_path: Path) -> None:
    (tmp_path / "cgroup/pods/abc").mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        processes = Processes(pid=sleeper.pid, pid_started=pidfd.start_time(sleeper.pid))
        remembered = Remembered(processes=processes, cgroup_path="/pods/abc")
        await bed.endings.kill(ID, "runc", signal.SIGTERM, everyone=True, remembered=remembered)
        assert sleeper.wait() == -signal.SIGTERM
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        processes = Processes(pid=sleeper.pid, pid_started=pidfd.start_time(sleeper.pid))
        await bed.endings.delete(ID, "runc", remembered=Remembered(processes=processes, cgroup_path="/pods/abc"))
        assert not pidfd.alive(processes.pid, processes.pid_started)
    assert not (tmp_path / "cgroup/pods/abc").exists()
    assert (tmp_path / "cgroup/pods").exists()


async def test_signals_for_the_unknown_and_the_ended(bed: Bed) -> None:
    with pytest.raises(NotFound):
        await bed.endings.kill(ID, "runc", 15, everyone=False)
    bed.container({})
    await bed.endings.kill(ID, "runc", 15, everyone=True)


def test_a_failed_undo_stays_beside_its_cause() -> None:
    error = HostFailure("create: no")
    note_failure(error, HostFailure("delete: busy"))
    assert str(error) == "create: no; and while undoing: delete: busy"
    note_failure(KeyboardInterrupt(), HostFailure("delete: busy"))
