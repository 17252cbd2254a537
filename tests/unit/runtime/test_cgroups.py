from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import HostFailure, InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.runtime.cgroups import CgroupTree
from tests.fakes.clock import FakeClock
from tests.fakes.facts import host_facts


def v1_tree(tmp_path: Path, *, systemd: bool = False) -> CgroupTree:
    mounts = {}
    for name in ("cpu", "cpuset", "memory", "unified"):
        (tmp_path / name).mkdir()
        mounts[name] = str(tmp_path / name)
    mounts["cpuacct"] = mounts["cpu"]
    return CgroupTree(host_facts(cgroup_version=1, cgroup_mounts=mounts), systemd=systemd, clock=FakeClock())


def v2_host(tmp_path: Path) -> HostFacts:
    return host_facts(cgroup_version=2, cgroup_mounts={"unified": str(tmp_path)})


def test_a_hierarchy_of_two_controllers_counts_once(tmp_path: Path) -> None:
    names = [Path(path).parent.parent.name for path in v1_tree(tmp_path).directories("/pods/a")]
    assert names == ["cpu", "cpuset", "memory", "unified"]


@pytest.mark.parametrize("path", ["", "/", "-.slice", "/.", "/a/../.."])
def test_the_root_is_never_made_or_removed(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidInput, match=r"linux\.cgroup_parent"):
        v1_tree(tmp_path).directories(path)


async def test_what_is_missing_is_made_in_every_hierarchy_but_the_unified_one(tmp_path: Path) -> None:
    tree = v1_tree(tmp_path)
    (tmp_path / "cpuset/pods/a").mkdir(parents=True)
    for place, cpus in (("", "0-3\n"), ("pods", "1-2\n"), ("pods/a", "\n")):
        (tmp_path / "cpuset" / place / "cpuset.cpus").write_text(cpus)
        (tmp_path / "cpuset" / place / "cpuset.mems").write_text("0\n")
    await tree.ensure("/pods/a")
    await tree.ensure("/pods/a")
    assert (tmp_path / "cpu/pods/a").is_dir()
    assert (tmp_path / "memory/pods/a").is_dir()
    assert not (tmp_path / "unified/pods").exists()
    # An empty cpuset takes no process: it gets its parent's.
    assert (tmp_path / "cpuset/pods/a/cpuset.cpus").read_text() == "1-2\n"


async def test_controllers_are_handed_down_on_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    await CgroupTree(v2_host(tmp_path), systemd=False, clock=FakeClock()).ensure("/pod")
    assert (tmp_path / "pod").is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"


async def test_systemd_makes_its_slices_itself(tmp_path: Path) -> None:
    await v1_tree(tmp_path, systemd=True).ensure("a-b.slice")
    assert list((tmp_path / "cpu").iterdir()) == []


async def test_removal_takes_what_is_below_in_every_hierarchy_and_is_idempotent(tmp_path: Path) -> None:
    tree = v1_tree(tmp_path)
    for name in ("cpu", "unified"):
        (tmp_path / name / "pods/a/b/c").mkdir(parents=True)
        (tmp_path / name / "pods/a/d").mkdir()
    await tree.remove("/pods/a")
    await tree.remove("/pods/a")
    assert list((tmp_path / "cpu/pods").iterdir()) == []
    assert list((tmp_path / "unified/pods").iterdir()) == []


class ImpatientClock(FakeClock):
    """Counts how often it was slept on, and lets nobody wait."""

    def __init__(self) -> None:
        super().__init__()
        self.naps = 0

    async def sleep(self, seconds: float) -> None:
        self.naps += 1


async def test_what_stays_busy_is_named_in_the_end(tmp_path: Path) -> None:
    # A file in the directory keeps it from being removed, as a process keeps a cgroup.
    (tmp_path / "pod/inner").mkdir(parents=True)
    (tmp_path / "pod/inner/file").write_text("")
    clock = ImpatientClock()
    tree = CgroupTree(v2_host(tmp_path), systemd=False, clock=clock)
    with pytest.raises(HostFailure, match=r"remove cgroup .*/pod: processes are still in it"):
        await tree.remove("/pod")
    assert clock.naps == 50


async def test_an_unwritable_hierarchy_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tree = CgroupTree(
        host_facts(cgroup_version=1, cgroup_mounts={"cpu": str(tmp_path / "file")}), systemd=False, clock=FakeClock()
    )
    with pytest.raises(HostFailure, match="make cgroup"):
        await tree.ensure("/pod")
