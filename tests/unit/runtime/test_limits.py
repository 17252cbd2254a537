from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.model.errors import FailedPrecondition
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.runtime import limits

V1 = {
    "cpu/cpu.shares": "1024",
    "cpu/cpu.cfs_quota_us": "-1",
    "cpu/cpu.cfs_period_us": "100000",
    "cpuset/cpuset.cpus": "0-1",
    "cpuset/cpuset.mems": "0",
    "memory/memory.limit_in_bytes": "1048576",
    "memory/memory.memsw.limit_in_bytes": "9223372036854771712",
    "hugetlb/hugetlb.2MB.limit_in_bytes": "9223372036854771712",
}
V2 = {
    "cpu.weight": "39",
    "cpu.max": "max 100000",
    "memory.max": "max",
    "memory.swap.max": "0",
    "memory.high": "max",
    "memory.stat": "anon 5000\nfile 90000",
}
EVERYTHING = Resources(
    cpu_shares=2,
    cpu_quota_us=20000,
    cpu_period_us=50000,
    cpuset_cpus="1",
    cpuset_mems="0",
    memory_limit_bytes=1 << 21,
    memory_swap_limit_bytes=1 << 22,
    hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=0),),
)


@pytest.fixture
def v1(tmp_path: Path) -> dict[str, str]:
    for name, text in V1.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    return {key: str(tmp_path / key) for key in ("cpu", "cpuset", "memory", "hugetlb")}


@pytest.fixture
def v2(tmp_path: Path) -> dict[str, str]:
    for name, text in V2.items():
        (tmp_path / name).write_text(f"{text}\n")
    return {"unified": str(tmp_path)}


def test_version_1_as_it_was(v1: dict[str, str]) -> None:
    held = limits.hold(v1, EVERYTHING, [])
    assert limits.as_resources(held) == Resources(
        cpu_shares=1024,
        cpu_quota_us=-1,
        cpu_period_us=100000,
        cpuset_cpus="0-1",
        cpuset_mems="0",
        memory_limit_bytes=1048576,
        memory_swap_limit_bytes=-1,
        hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=-1),),
    )


def test_only_what_a_change_can_touch_is_held(v1: dict[str, str]) -> None:
    assert limits.as_resources(limits.hold(v1, Resources(cpuset_cpus="1"), [])) == Resources(cpuset_cpus="0-1")
    # A runtime moves both limits of memory for one.
    memory = limits.hold(v1, Resources(memory_limit_bytes=5), [])
    assert {Path(path).name for path in memory.files} == {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}
    assert limits.hold({}, EVERYTHING, []).files == {}


def test_what_was_written_half_way_is_put_back(v1: dict[str, str]) -> None:
    held = limits.hold(v1, EVERYTHING, [])
    Path(v1["cpu"], "cpu.shares").write_text("2")
    Path(v1["memory"], "memory.limit_in_bytes").unlink()
    limits.put_back(held)
    assert Path(v1["cpu"], "cpu.shares").read_text() == "1024"


def test_version_2_as_it_was(v2: dict[str, str]) -> None:
    wanted = Resources(cpu_shares=2, cpu_quota_us=1000, memory_limit_bytes=7, unified={"memory.high": "5"})
    held = limits.hold(v2, wanted, [])
    files = {"cpu.weight": "39", "cpu.max": "max 100000", "memory.max": "max", "memory.swap.max": "0"}
    assert limits.as_resources(held) == Resources(unified={**files, "memory.high": "max"})
    Path(v2["unified"], "memory.high").write_text("5")
    limits.put_back(held)
    assert Path(v2["unified"], "memory.high").read_text() == "max"


def test_a_limit_that_version_2_would_kill_for(v1: dict[str, str], v2: dict[str, str]) -> None:
    with pytest.raises(FailedPrecondition, match=r"linux\.memory_limit_in_bytes: 4000 is below the 5000 bytes"):
        limits.check_room(v2, Resources(memory_limit_bytes=4000))
    limits.check_room(v2, Resources(memory_limit_bytes=6000))
    limits.check_room(v2, Resources(memory_limit_bytes=-1))
    limits.check_room(v1, Resources(memory_limit_bytes=1))


def test_oom_scores() -> None:
    here = os.getpid()
    former = int(Path("/proc/self/oom_score_adj").read_text())
    held = limits.hold({}, Resources(oom_score_adj=900), [here, 2**22 + 1])
    assert held.oom_scores == {here: former}
    assert limits.set_oom_score(here, 901)
    limits.put_back(held)
    assert int(Path("/proc/self/oom_score_adj").read_text()) == former
    assert limits.hold({}, Resources(cpu_shares=2), [here]).oom_scores == {}
    assert not limits.set_oom_score(2**22 + 1, 5)
    assert limits.set_oom_score(here, former)
