from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.metrics import CgroupDetails, DeviceIo, HugepageUsage
from isulad_py.runtime.cgroup_details import V1_FILES, V2_FILES, details_v1, details_v2, hugepage_files

V1 = {
    "cpu.stat": b"nr_periods 7\nnr_throttled 3\nthrottled_time 1500000000\nnr_bursts 0\n",
    "cpu.cfs_quota_us": b"20000\n",
    "cpu.cfs_period_us": b"100000\n",
    "cpu.shares": b"1024\n",
    "memory.failcnt": b"9\n",
    "memory.max_usage_in_bytes": b"4096\n",
    "memory.kmem.usage_in_bytes": b"12\n",
    "memory.soft_limit_in_bytes": b"9223372036854771712\n",
    "memory.memsw.limit_in_bytes": b"67108864\n",
    "memory.oom_control": b"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory.stat": b"pgfault 5\npgmajfault 1\ntotal_mapped_file 33\ntotal_pgfault 50\n",
    "pids.max": b"100\n",
    "blkio.throttle.io_service_bytes_recursive": b"8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\nTotal 30\n",
    "blkio.throttle.io_serviced_recursive": b"8:0 Read 1\n8:0 Write 2\n253:1 Write 4\nTotal 7\n",
    "hugetlb.2MB.usage_in_bytes": b"2097152\n",
    "hugetlb.2MB.max_usage_in_bytes": b"4194304\n",
}
V2 = {
    "cpu.stat": b"usage_usec 1\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1500000\n",
    "cpu.max": b"20000 100000\n",
    "cpu.weight": b"39\n",
    "memory.events": b"low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n",
    "memory.peak": b"4096\n",
    "memory.min": b"0\n",
    "memory.stat": b"anon 1\nkernel 12\nfile_mapped 33\npgfault 5\npgmajfault 1\n",
    "memory.swap.max": b"max\n",
    "pids.max": b"max\n",
    "io.stat": b"8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n7:1 \n",
    "hugetlb.2MB.current": b"2097152\n",
}


def name(major: int, minor: int) -> str:
    return f"/dev/d{major}-{minor}"


def test_version_1() -> None:
    assert details_v1(V1, sizes=["2MB", "1GB"], device_name=name) == CgroupDetails(
        cpu_periods=7,
        cpu_throttled_periods=3,
        cpu_throttled_ns=1_500_000_000,
        cpu_quota_us=20000,
        cpu_period_us=100000,
        cpu_shares=1024,
        memory_limit_hits=9,
        memory_most_used_bytes=4096,
        memory_kernel_bytes=12,
        memory_mapped_file_bytes=33,
        memory_reservation_bytes=None,
        memory_swap_limit_bytes=67108864,
        own_page_faults=5,
        own_major_page_faults=1,
        oom_kills=2,
        threads_limit=100,
        io=(
            DeviceIo(device="/dev/d8-0", major=8, minor=0, read_bytes=10, write_bytes=20, reads=1, writes=2),
            DeviceIo(device="/dev/d253-1", major=253, minor=1, writes=4),
        ),
        hugepages=(HugepageUsage(page_size="2MB", usage_bytes=2097152, max_usage_bytes=4194304),),
    )


def test_version_2() -> None:
    assert details_v2(V2, sizes=["2MB"], device_name=name) == CgroupDetails(
        cpu_periods=7,
        cpu_throttled_periods=3,
        cpu_throttled_ns=1_500_000_000,
        cpu_quota_us=20000,
        cpu_period_us=100000,
        cpu_shares=998,
        memory_limit_hits=9,
        memory_most_used_bytes=4096,
        memory_kernel_bytes=12,
        memory_mapped_file_bytes=33,
        memory_reservation_bytes=0,
        memory_swap_limit_bytes=None,
        own_page_faults=5,
        own_major_page_faults=1,
        oom_kills=2,
        threads_limit=None,
        io=(DeviceIo(device="/dev/d8-0", major=8, minor=0, read_bytes=10, write_bytes=20, reads=1, writes=2),),
        hugepages=(HugepageUsage(page_size="2MB", usage_bytes=2097152),),
    )


def test_no_limit_is_none() -> None:
    assert details_v1({"cpu.cfs_quota_us": b"-1\n"}, sizes=[], device_name=name).cpu_quota_us is None
    unlimited = details_v2({"cpu.max": b"max 100000\n"}, sizes=[], device_name=name)
    assert (unlimited.cpu_quota_us, unlimited.cpu_period_us) == (None, 100000)


NAMES = [
    *(name for _, names in V1_FILES for name in names),
    *V2_FILES,
    *hugepage_files(["2MB"], v2=False),
    *hugepage_files(["2MB"], v2=True),
    "memory.stat",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=60)))
def test_nothing_in_a_file_is_an_error(files: dict[str, bytes]) -> None:
    details_v1(files, sizes=["2MB"], device_name=name)
    details_v2(files, sizes=["2MB"], device_name=name)


def test_without_files_nothing_is_known() -> None:
    assert details_v1({}, sizes=["2MB"], device_name=name) == CgroupDetails()
    assert details_v2({}, sizes=["2MB"], device_name=name) == CgroupDetails()
