"""Bundles on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.model.container import Processes
from isulad_py.model.errors import AlreadyExists, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch
from isulad_py.runtime.bundle import Bundles, Exit, Launched, read_number
from isulad_py.runtime.layout import Layout

ID = ContainerId("abc")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path / "state"))


@pytest.fixture
def bundles(layout: Layout) -> Bundles:
    return Bundles(layout, "boot")


def launch(**changes: object) -> Launch:
    fields: dict[str, object] = {"id": ID, "handler": "runc", "spec": b"{}"}
    return Launch(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_bundle_holds_the_spec_and_the_runtime_has_a_root(bundles: Bundles, layout: Layout) -> None:
    path = bundles.write(launch(spec=b'{"ociVersion":"1.0.2"}'))
    assert path == layout.bundle(ID)
    assert bundles.spec(ID) == b'{"ociVersion":"1.0.2"}'
    assert Path(layout.runtime_root("runc")).is_dir()
    assert bundles.exists(ID)
    assert bundles.present() == {ID}


def test_a_second_bundle_with_the_id_is_refused_and_the_first_kept(bundles: Bundles) -> None:
    bundles.write(launch(spec=b"1"))
    with pytest.raises(AlreadyExists):
        bundles.write(launch(spec=b"2"))
    assert bundles.spec(ID) == b"1"


def test_the_directory_of_the_log_is_made(bundles: Bundles, tmp_path: Path) -> None:
    wanted = launch(log_path=str(tmp_path / "logs/a/0.log"))
    bundles.write(wanted)
    assert (tmp_path / "logs/a").is_dir()
    assert bundles.log_argument(wanted) == f"k8s-file:{tmp_path}/logs/a/0.log"
    assert bundles.log_argument(launch()) == "none"


def test_a_colon_in_the_logs_directory_is_kept_from_the_monitor(
    bundles: Bundles, layout: Layout, tmp_path: Path
) -> None:
    wanted = launch(log_path=str(tmp_path / "a:b/0.log"))
    bundles.write(wanted)
    assert bundles.log_argument(wanted) == "k8s-file:log/0.log"
    assert Path(layout.log_link(ID)).resolve() == tmp_path / "a:b"


@pytest.mark.parametrize("path", ["relative/0.log", "/logs/a:b.log"])
def test_a_log_path_that_cannot_be_told_is_refused(bundles: Bundles, path: str) -> None:
    with pytest.raises(InvalidInput, match="log_path"):
        bundles.write(launch(log_path=path))


@pytest.mark.parametrize("name", ["0.log", "0.log/1.log", "fifo"])
def test_a_log_that_is_no_file_is_refused(bundles: Bundles, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    if "/" in name:
        (tmp_path / "0.log").touch()
    else:
        (tmp_path / "0.log").mkdir()
    with pytest.raises(FailedPrecondition, match="log_path: "):
        bundles.write(launch(log_path=str(tmp_path / name)))


def test_a_record_comes_back(bundles: Bundles) -> None:
    bundles.write(launch())
    with pytest.raises(NotFound):
        bundles.record(ID)
    processes = Processes(pid=1, pid_started=2, monitor_pid=3, monitor_started=4)
    launched = Launched(
        handler="runc", boot_id="boot", family="runc", processes=processes, cgroups={"pids": "/x"}, log_path="/l"
    )
    bundles.write_record(ID, launched)
    assert bundles.record(ID) == launched


def test_a_record_that_cannot_be_read_is_none(bundles: Bundles, layout: Layout) -> None:
    bundles.write(launch())
    Path(layout.record(ID)).write_text("{half")
    with pytest.raises(NotFound):
        bundles.record(ID)


def test_the_cgroup_that_the_spec_names(bundles: Bundles) -> None:
    assert bundles.cgroups_path(ID) == ""
    bundles.write(launch(spec=b'{"linux":{"cgroupsPath":"/pods/abc"}}'))
    assert bundles.cgroups_path(ID) == "/pods/abc"


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"linux":null}', b'{"linux":{}}', b"\xff"])
def test_a_spec_that_names_none(bundles: Bundles, document: bytes) -> None:
    bundles.write(launch(spec=document))
    assert bundles.cgroups_path(ID) == ""


def test_the_exit_has_the_files_content_and_time(bundles: Bundles, layout: Layout) -> None:
    bundles.write(launch())
    assert bundles.exit(ID) is None
    path = Path(layout.exit_file(ID))
    path.write_text("137")
    assert bundles.exit(ID) == Exit(code=137, at=path.stat().st_mtime_ns)
    path.write_text("-1")
    assert bundles.exit(ID) == Exit(code=-1, at=path.stat().st_mtime_ns)
    path.write_text("rubbish")
    assert bundles.exit(ID) is None


def test_the_mark_of_memory_shortage(bundles: Bundles, layout: Layout) -> None:
    bundles.write(launch())
    assert not bundles.out_of_memory(ID)
    Path(layout.oom_file(ID)).touch()
    assert bundles.out_of_memory(ID)


def test_the_runtimes_own_state(bundles: Bundles, layout: Layout) -> None:
    bundles.write(launch())
    assert not bundles.has_runtime_state(ID, "runc")
    state = Path(layout.runtime_state("runc", ID))
    state.mkdir()
    assert bundles.has_runtime_state(ID, "runc")
    assert not bundles.has_known_state(ID, "runc")
    (state / "state.json").touch()
    assert bundles.has_known_state(ID, "runc")
    assert not bundles.waits_for_start(ID, "runc")
    (state / "exec.fifo").touch()
    assert bundles.waits_for_start(ID, "runc")
    bundles.remove_runtime_state(ID, "runc")
    assert not state.exists()


def test_what_has_only_a_runtimes_state_is_present(bundles: Bundles, layout: Layout) -> None:
    assert bundles.present() == frozenset()
    Path(layout.runtime_state("crun", ContainerId("def"))).mkdir(parents=True)
    assert bundles.present() == {"def"}


def test_after_a_reboot_a_container_has_no_processes(bundles: Bundles, layout: Layout) -> None:
    """The state need not be on a tmpfs, and their numbers may be those of others by now."""
    bundles.write(launch())
    bundles.write_record(ID, Launched(handler="runc", processes=Processes(pid=1, pid_started=2), log_path="/l"))
    later = Bundles(layout, "next boot").record(ID)
    assert (later.processes, later.log_path) == (Processes(), "/l")


def test_which_handler_a_container_was_made_with(bundles: Bundles, layout: Layout) -> None:
    assert bundles.handler_of(ID) == ""
    bundles.write(launch(handler="crun"))
    assert bundles.handler_of(ID) == ""
    Path(layout.runtime_state("crun", ID)).mkdir()
    assert bundles.handler_of(ID) == "crun"
    bundles.write_record(ID, Launched(handler="other"))
    assert bundles.handler_of(ID) == "other"


def test_removal_can_be_repeated(bundles: Bundles) -> None:
    bundles.write(launch())
    bundles.remove(ID)
    bundles.remove(ID)
    assert bundles.present() == frozenset()
    with pytest.raises(NotFound):
        bundles.spec(ID)


def test_numbers(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    assert read_number(str(path)) == 0
    path.write_text("")
    assert read_number(str(path)) == 0
    path.write_text("17")
    assert read_number(str(path)) == 17
