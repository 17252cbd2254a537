"""A container's processes by its cgroups. Plain directories stand for cgroups: only the files in them count."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.runtime import members

MOUNTS = {"memory": "/cg/memory", "cpu": "/cg/cpu,cpuacct", "name=systemd": "/cg/systemd", "unified": "/cg/unified"}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_membership_on_v1_with_an_empty_v2_beside_it() -> None:
    text = b"9:name=systemd:/pods/a\n4:memory:/pods/a\n2:cpu,cpuacct:/pods/a\n3:devices:/pods/a\n0::/other/a\n"
    assert members.parse_membership(text, MOUNTS) == {
        "name=systemd": "/cg/systemd/pods/a",
        "memory": "/cg/memory/pods/a",
        "cpu": "/cg/cpu,cpuacct/pods/a",
        "unified": "/cg/unified/other/a",
    }


def test_membership_on_v2_and_of_the_root() -> None:
    assert members.parse_membership(b"0::/a.slice/b.scope\n", {"unified": "/cg"}) == {"unified": "/cg/a.slice/b.scope"}
    assert members.parse_membership(b"0::/\n", {"unified": "/cg"}) == {"unified": "/cg"}
    assert members.parse_membership(b"0::/a:b\n", {"unified": "/cg"}) == {"unified": "/cg/a:b"}


@pytest.mark.parametrize("text", [b"", b"rubbish", b"1:memory", b"x:memory:relative\n", b"\xff\xff:\xff"])
def test_membership_of_rubbish(text: bytes) -> None:
    assert members.parse_membership(text, MOUNTS) == {}


def test_membership_of_a_process_that_has_ended() -> None:
    assert members.read_membership(2**22 + 1, MOUNTS) == {}


def test_the_directory_whose_list_counts() -> None:
    assert members.listing({"memory": "/m", "freezer": "/f", "pids": "/p"}) == "/f"
    assert members.listing({"unified": "/u"}) == "/u"
    assert members.listing({"cpu": "/c"}) == ""


def test_processes_of_a_cgroup_and_all_below(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "cgroup.procs").write_text("1\n2\n")
    (tmp_path / "a/b/cgroup.procs").write_text("3\n")
    assert members.processes(str(tmp_path)) == {1, 2, 3}
    assert members.processes(str(tmp_path / "gone")) == set()
    assert members.processes("") == set()


def test_every_process_gets_the_signal(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{sleeper.pid}\n{2**22 + 1}\n")
    started = pidfd.start_time(sleeper.pid)
    assert members.signal_all(str(tmp_path), signal.SIGKILL) == {sleeper.pid: started}
    assert sleeper.wait() == -signal.SIGKILL


@pytest.mark.parametrize("by_file", [False, True])
def test_all_are_killed(tmp_path: Path, sleeper: subprocess.Popen[bytes], *, by_file: bool) -> None:
    assert members.kill_all("") == members.kill_all(str(tmp_path)) == {}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    if by_file:
        (tmp_path / "cgroup.kill").touch()
    started = pidfd.start_time(sleeper.pid)
    assert members.kill_all(str(tmp_path)) == {sleeper.pid: started}
    if by_file:
        assert (tmp_path / "cgroup.kill").read_text() == "1"
        sleeper.kill()
    else:
        assert (tmp_path / "freezer.state").read_text() == "THAWED"
        assert sleeper.wait() == -signal.SIGKILL


def test_freezing_on_v1(tmp_path: Path) -> None:
    groups = {"freezer": str(tmp_path)}
    assert not members.frozen(groups)
    (tmp_path / "exec-1").mkdir()
    for state, held in (("THAWED", False), ("FREEZING", True), ("FROZEN", True)):
        (tmp_path / "freezer.state").write_text(f"{state}\n")
        assert members.frozen(groups) is held
    members.thaw(groups)
    assert (tmp_path / "freezer.state").read_text() == "THAWED"
    assert (tmp_path / "exec-1/freezer.state").read_text() == "THAWED"


def test_freezing_on_v2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.freeze").write_text("1\n")
    assert members.frozen({"unified": str(tmp_path)})
    members.thaw({"unified": str(tmp_path)})
    assert (tmp_path / "cgroup.freeze").read_text() == "1\n"
    assert not members.frozen({})


def test_kills_for_memory(tmp_path: Path) -> None:
    assert members.oom_kills({"memory": str(tmp_path)}) is None
    assert members.oom_kills({}) is None
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert members.oom_kills({"memory": str(tmp_path), "unified": "/nowhere"}) == 3
    (tmp_path / "memory.events").write_text("low 0\nhigh 9\noom 2\noom_kill 1\noom_group_kill 0\n")
    assert members.oom_kills({"unified": str(tmp_path)}) == 1


def test_the_limit_for_memory_and_swap(tmp_path: Path) -> None:
    assert members.memory_and_swap_limit({"unified": "/u"}) is None
    assert members.memory_and_swap_limit({"memory": str(tmp_path)}) is None
    (tmp_path / "memory.memsw.limit_in_bytes").write_text("1048576\n")
    assert members.memory_and_swap_limit({"memory": str(tmp_path)}) == 1048576


def test_removal_goes_as_deep_as_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert members.remove(str(tmp_path / "a"))
    assert members.remove(str(tmp_path / "a"))
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/busy").touch()
    assert not members.remove(str(tmp_path / "d"))
    assert not (tmp_path / "d/e").exists()


def test_joining_tells_what_was_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    refused = members.join(7, [str(tmp_path / "a"), str(tmp_path / "gone")])
    assert (tmp_path / "a/cgroup.procs").read_text() == "7"
    assert [type(error) for error in refused] == [FileNotFoundError]


V1 = {"freezer": "/f/c", "memory": "/m/c", "unified": "/u/c"}


@pytest.mark.parametrize(
    ("cgroups", "family", "expected"),
    [
        (V1, "runc", ("freezer:x", "")),
        (V1, "crun", ("", "/u/c/x/cgroup.procs")),
        (V1 | {"unified": "/u"}, "crun", ("", "")),
        ({"freezer": "/f/c"}, "crun", ("", "")),
        ({"unified": "/u/c"}, "runc", ("x", "")),
        ({"unified": "/u/c"}, "crun", ("x", "")),
        ({"unified": "/u/c"}, "runsc", ("", "")),
        ({"memory": "/m/c", "unified": "/u/c"}, "runc", None),
        ({}, "runc", None),
    ],
)
def test_who_gets_a_cgroup_for_an_exec(cgroups: dict[str, str], family: str, expected: tuple[str, str] | None) -> None:
    group = members.ExecGroup.below(cgroups, family, "x")
    assert ((group.argument, group.door) if group else None) == expected


def test_a_process_joins_the_tree_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = {"memory": "/m", "unified": str(tmp_path)}
    outside = {"memory": "/m/pod/c", "unified": str(tmp_path)}
    monkeypatch.setattr(members, "read_membership", lambda pid, mounts: dict(outside))
    found = members.in_side_tree(7, mounts)
    assert found == {"memory": "/m/pod/c", "unified": f"{tmp_path}/pod/c"}
    assert (tmp_path / "pod/c/cgroup.procs").read_text() == "7"
    (tmp_path / "file").touch()
    mounts["unified"] = outside["unified"] = f"{tmp_path}/file"
    assert members.in_side_tree(7, mounts) == outside


@pytest.mark.parametrize("inside", [{"memory": "/m/c", "unified": "/u/c"}, {"memory": "/m/c"}, {"unified": "/u/c"}, {}])
def test_a_process_that_is_in_all_trees_stays(monkeypatch: pytest.MonkeyPatch, inside: dict[str, str]) -> None:
    monkeypatch.setattr(members, "read_membership", lambda pid, mounts: dict(inside))
    assert members.in_side_tree(7, {"memory": "/m", "unified": "/u"}) == inside


def test_the_cgroup_of_an_exec_is_made_and_dissolved(tmp_path: Path) -> None:
    group = members.ExecGroup.below({"freezer": str(tmp_path)}, "runc", "x")
    assert group is not None
    assert group.make()
    assert (tmp_path / "x").is_dir()
    assert not group.make()
    group.dissolve()
    group.dissolve()
    assert not (tmp_path / "x").exists()
    nowhere = members.ExecGroup.below({"freezer": str(tmp_path / "gone")}, "runc", "x")
    assert nowhere is not None
    assert not nowhere.make()


def test_a_command_is_taken_in_with_its_children(tmp_path: Path) -> None:
    group = members.ExecGroup.below({"freezer": str(tmp_path)}, "crun", "x")
    assert group is not None
    group.make()
    group.take_in(2**22 + 1)
    assert not (tmp_path / "x/cgroup.procs").exists()
    with subprocess.Popen(["sh", "-c", "sleep 1000 & wait"]) as shell:
        while not pidfd.descendants(shell.pid):
            os.sched_yield()
        group.take_in(shell.pid)
        taken = (tmp_path / "x/cgroup.procs").read_text()
        below = pidfd.descendants(shell.pid)
        assert taken in {str(pid) for pid in (shell.pid, *below)}
        for pid in (*below, shell.pid):
            os.kill(pid, signal.SIGKILL)


def test_what_still_runs_goes_back_to_the_containers_cgroup(tmp_path: Path) -> None:
    group = members.ExecGroup.below({"freezer": str(tmp_path)}, "runc", "x")
    assert group is not None
    group.make()
    (tmp_path / "x/cgroup.procs").write_text("7\n")
    group.dissolve()
    assert (tmp_path / "cgroup.procs").read_text() == "7"


@pytest.mark.parametrize("by_file", [False, True])
def test_an_execs_processes_are_killed(tmp_path: Path, sleeper: subprocess.Popen[bytes], *, by_file: bool) -> None:
    group = members.ExecGroup.below({"freezer": str(tmp_path)}, "runc", "x")
    assert group is not None
    group.make()
    (tmp_path / "x/cgroup.procs").write_text(f"{sleeper.pid}\n")
    if by_file:
        (tmp_path / "x/cgroup.kill").touch()
    started = pidfd.start_time(sleeper.pid)
    assert group.kill() == {sleeper.pid: started}
    if by_file:
        assert (tmp_path / "x/cgroup.kill").read_text() == "1"
    else:
        assert sleeper.wait() == -signal.SIGKILL
        assert (tmp_path / "x/freezer.state").read_text() == "THAWED"
