from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.stats import CgroupSample, Pressure, Psi
from isulad_py.runtime import cgroup_values

V1 = {
    "cpuacct.usage": b"123456789\n",
    "cpuacct.stat": b"user 7\nsystem 5\n",
    "memory.usage_in_bytes": b"10485760\n",
    "memory.limit_in_bytes": b"67108864\n",
    "memory.stat": b"cache 1\nrss 2\nhierarchical_memory_limit 67108864\nhierarchical_memsw_limit 134217728\n"
    b"total_cache 4096\ntotal_rss 8192\ntotal_pgfault 70\ntotal_pgmajfault 3\ntotal_swap 512\n"
    b"total_inactive_file 1048576\n",
    "pids.current": b"4\n",
    "cpu.pressure": b"some avg10=1.50 avg60=0.25 avg300=0.00 total=9000\n",
}
V2 = {  # recorded: Linux 6.1, a scope limited to 64 MiB without swap
    "cpu.stat": b"usage_usec 550369\nuser_usec 418759\nsystem_usec 131610\nnr_periods 13\nnr_throttled 10\n",
    "memory.current": b"7581696\n",
    "memory.max": b"67108864\n",
    "memory.stat": b"anon 225280\nfile 6930432\nkernel 208896\ninactive_anon 196608\nactive_anon 8192\n"
    b"inactive_file 6885376\nactive_file 45056\npgfault 402\npgmajfault 2\nthp_collapse_alloc 0\n",
    "memory.swap.current": b"0\n",
    "memory.swap.max": b"0\n",
    "pids.current": b"2\n",
    "cpu.pressure": b"some avg10=2.17 avg60=0.39 avg300=0.08 total=483601\n"
    b"full avg10=2.17 avg60=0.39 avg300=0.08 total=483229\n",
}
NOTHING = CgroupSample(timestamp=1)


def test_version_1() -> None:
    assert cgroup_values.sample_v1(V1, timestamp=1, tick_ns=10_000_000, processes=3) == CgroupSample(
        timestamp=1,
        cpu_usage_ns=123456789,
        cpu_user_ns=70_000_000,
        cpu_system_ns=50_000_000,
        cpu_psi=Psi(some=Pressure(total_us=9000, avg10=1.5, avg60=0.25, avg300=0.0)),
        memory_usage_bytes=10485760,
        memory_working_set_bytes=9437184,
        memory_rss_bytes=8192,
        memory_cache_bytes=4096,
        memory_limit_bytes=67108864,
        memory_page_faults=70,
        memory_major_page_faults=3,
        swap_usage_bytes=512,
        swap_limit_bytes=67108864,
        pids_current=4,
        processes=3,
        threads_current=4,
    )


def test_version_2() -> None:
    assert cgroup_values.sample_v2(V2, timestamp=1, processes=2) == CgroupSample(
        timestamp=1,
        cpu_usage_ns=550_369_000,
        cpu_user_ns=418_759_000,
        cpu_system_ns=131_610_000,
        cpu_psi=Psi(
            some=Pressure(total_us=483601, avg10=2.17, avg60=0.39, avg300=0.08),
            full=Pressure(total_us=483229, avg10=2.17, avg60=0.39, avg300=0.08),
        ),
        memory_usage_bytes=7581696,
        memory_working_set_bytes=696320,
        memory_rss_bytes=225280,
        memory_cache_bytes=6930432,
        memory_limit_bytes=67108864,
        memory_page_faults=402,
        memory_major_page_faults=2,
        swap_usage_bytes=0,
        swap_limit_bytes=0,
        pids_current=2,
        processes=2,
        threads_current=2,
    )


def test_version_2_writes_max_for_no_limit() -> None:
    files = {**V2, "memory.max": b"max\n", "memory.swap.max": b"max\n", "memory.current": b"4096\n"}
    sample = cgroup_values.sample_v2(files, timestamp=1, processes=2)
    assert (sample.memory_limit_bytes, sample.swap_limit_bytes) == (None, None)
    # Counted apart, so the difference could be below zero.
    assert sample.memory_working_set_bytes == 0


def test_a_missing_controller_is_not_zero() -> None:
    assert cgroup_values.sample_v1({}, timestamp=1, tick_ns=1, processes=None) == NOTHING
    assert cgroup_values.sample_v2({}, timestamp=1, processes=None) == NOTHING


@pytest.mark.parametrize("text", [b"9223372036854771712\n", b"9223372036854710272\n", b"18446744073709551615"])
def test_the_largest_numbers_mean_no_limit(text: bytes) -> None:
    sample = cgroup_values.sample_v1({"memory.limit_in_bytes": text}, timestamp=1, tick_ns=1, processes=None)
    assert sample.memory_limit_bytes is None


def test_no_limit_of_memory_and_swap_is_no_limit_of_swap() -> None:
    stat = b"hierarchical_memory_limit 4096\nhierarchical_memsw_limit 9223372036854771712\n"
    assert cgroup_values.sample_v1({"memory.stat": stat}, timestamp=1, tick_ns=1, processes=None) == NOTHING


@given(text=st.binary(max_size=200))
def test_garbage_is_never_an_error(text: bytes) -> None:
    cgroup_values.sample_v1(dict.fromkeys(V1, text), timestamp=1, tick_ns=1, processes=None)
    cgroup_values.sample_v2(dict.fromkeys(V2, text), timestamp=1, processes=None)


@pytest.mark.parametrize(
    "text",
    [b"", b"some\n", b"some avg10=x avg60=0 avg300=0 total=1\n", b"some avg10=0 avg60=0 total=1\n", b"most avg10=0\n"],
)
def test_pressure_that_is_not_as_documented_is_unknown(text: bytes) -> None:
    assert cgroup_values.psi(text) is None
