from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import facts
from isulad_py.model.errors import HostFailure

V1 = b"""31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /other/cpu rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
35 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd,release_agent=/x
36 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
garbage - cgroup
37 31 0:39 /
"""


def make_host(tmp_path: Path, mountinfo: bytes) -> tuple[str, str]:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "self").mkdir(parents=True)
    (proc / "sys/kernel/random").mkdir(parents=True)
    (proc / "self/mountinfo").write_bytes(mountinfo)
    (proc / "self/status").write_text(
        "Name:\tx\nCapPrm:\t000001fffeffffff\nCapEff:\t0000000001000001\nCapBnd:\t0000000000000007\nSeccomp:\t0\n"
    )
    (proc / "self/oom_score_adj").write_text("-500\n")
    (proc / "meminfo").write_text("MemTotal:       1024 kB\nSwapTotal:      x kB\n")
    (proc / "sys/kernel/random/boot_id").write_text("boot\n")
    for size in ("1048576kB", "2048kB", "64kB", "odd"):
        (sys / "kernel/mm/hugepages" / f"hugepages-{size}").mkdir(parents=True)
    return str(proc), str(sys)


def test_controllers_of_v1_are_found_where_they_are_mounted() -> None:
    assert facts.parse_cgroup_mounts(V1) == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
        "memory": "/sys/fs/cgroup/memory",
        "name=systemd": "/sys/fs/cgroup/systemd",
        "unified": "/sys/fs/cgroup/unified",
    }


def test_a_hybrid_host_counts_as_version_1(tmp_path: Path) -> None:
    proc, sys = make_host(tmp_path, V1)
    found = facts.read_facts(proc=proc, sys=sys)
    assert found.cgroup_version == 1
    assert found.cgroup_controllers == {"cpu", "cpuacct", "memory"}
    assert found.capabilities == ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH")
    assert found.can_lower_oom_score
    assert found.oom_score_adj == -500
    assert (found.memory_bytes, found.swap_bytes) == (1024 * 1024, 0)
    assert found.hugepage_sizes == ("64KB", "2MB", "1GB")
    assert (found.apparmor, found.selinux, found.seccomp) == (False, False, True)
    assert found.boot_id == "boot"


def test_a_unified_host_is_version_2(tmp_path: Path) -> None:
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids\n")
    line = (
        f"26 23 0:22 / {tmp_path}/cg rw - cgroup2 cgroup2 rw,nsdelegate\n35 1 0:37 / /s rw - cgroup c rw,name=systemd\n"
    )
    proc, sys = make_host(tmp_path, line.encode())
    (tmp_path / "sys/module/apparmor/parameters").mkdir(parents=True)
    (tmp_path / "sys/module/apparmor/parameters/enabled").write_text("Y\n")
    (tmp_path / "sys/kernel/security/apparmor").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text("0")
    found = facts.read_facts(proc=proc, sys=sys)
    assert found.cgroup_version == 2
    assert found.cgroup_controllers == {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}
    assert (found.apparmor, found.selinux) == (True, True)


def test_no_cgroups_at_all_is_version_1_without_controllers(tmp_path: Path) -> None:
    proc, sys = make_host(tmp_path, b"")
    found = facts.read_facts(proc=proc, sys=sys)
    assert (found.cgroup_version, found.cgroup_controllers) == (1, frozenset())


def test_an_unusable_proc_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostFailure, match="mountinfo"):
        facts.read_facts(proc=str(tmp_path), sys=str(tmp_path))


def test_this_host_can_be_read() -> None:
    found = facts.read_facts()
    assert found.boot_id
    assert found.memory_bytes > 0


def test_bits_without_a_name_are_left_out() -> None:
    assert facts.capability_names(1 << 40 | 1 << 60 | 1) == ("CAP_CHOWN", "CAP_CHECKPOINT_RESTORE")


def test_swap_can_be_limited_where_v1_has_the_file(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    assert not facts._swap_accounting({"memory": str(memory)}, 1)
    (memory / "memory.memsw.limit_in_bytes").touch()
    assert facts._swap_accounting({"memory": str(memory)}, 1)
    assert not facts._swap_accounting({}, 1)


def test_swap_can_be_limited_where_a_cgroup_of_v2_has_the_file(tmp_path: Path) -> None:
    assert facts._swap_accounting({"unified": str(tmp_path)}, 2)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "memory.max").touch()
    assert not facts._swap_accounting({"unified": str(tmp_path)}, 2)
    (tmp_path / "a" / "memory.swap.max").touch()
    assert facts._swap_accounting({"unified": str(tmp_path)}, 2)


@pytest.mark.parametrize(
    ("text", "inside"), [("         0          0 4294967295\n", False), ("0 100000 65536\n", True), (None, False)]
)
def test_user_namespaces_are_told_by_their_map(monkeypatch: pytest.MonkeyPatch, text: str | None, inside: bool) -> None:
    def read(_: Path) -> str:
        if text is None:
            raise FileNotFoundError
        return text

    monkeypatch.setattr(Path, "read_text", read)
    assert facts.in_user_namespace() is inside
