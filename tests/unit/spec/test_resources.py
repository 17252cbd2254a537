from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.spec import schema
from isulad_py.spec.resources import linux_resources
from tests.fakes.spec_inputs import capable_host

V1 = capable_host()
V2 = capable_host(cgroup_version=2, cgroup_controllers=frozenset({"cpu", "memory", "hugetlb"}), cgroup_mounts={})


def test_what_is_not_specified_is_left_out() -> None:
    assert linux_resources(Resources(), V1) == schema.LinuxResources()


def test_cpu() -> None:
    asked = Resources(cpu_shares=512, cpu_quota_us=-1, cpu_period_us=100_000, cpuset_cpus="0-3,7", cpuset_mems="0")
    assert linux_resources(asked, V1).cpu == schema.Cpu(shares=512, quota=-1, period=100_000, cpus="0-3,7", mems="0")


def test_a_memory_limit_alone_leaves_no_swap() -> None:
    assert linux_resources(Resources(memory_limit_bytes=99), V1).memory == schema.Memory(limit=99, swap=99)


@pytest.mark.parametrize(
    ("limit", "swap", "expected"),
    [
        (100, 100, schema.Memory(limit=100, swap=100)),
        (100, 300, schema.Memory(limit=100, swap=300)),
        (100, -1, schema.Memory(limit=100, swap=-1)),
        (-1, 0, schema.Memory(limit=-1, swap=-1)),
        (0, -1, schema.Memory(swap=-1)),
    ],
)
def test_memory_and_swap(limit: int, swap: int, expected: schema.Memory) -> None:
    asked = Resources(memory_limit_bytes=limit, memory_swap_limit_bytes=swap)
    assert linux_resources(asked, V1).memory == expected


def test_swap_is_left_out_where_no_cgroup_limits_it() -> None:
    host = capable_host(swap_accounting=False)
    both = Resources(memory_limit_bytes=100, memory_swap_limit_bytes=100)
    assert linux_resources(both, host).memory == schema.Memory(limit=100)
    assert linux_resources(Resources(memory_swap_limit_bytes=-1), host).memory is None


def test_pids() -> None:
    assert linux_resources(Resources(), V1, pids_limit=10).pids == schema.Pids(limit=10)


def test_a_zero_limit_of_a_missing_hugetlb_hierarchy_is_dropped_but_a_real_one_is_refused() -> None:
    asked = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=0),))
    host = capable_host(hugepage_sizes=("2MB",))
    assert linux_resources(asked, host).hugepage_limits == ()
    asked = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=1 << 21),))
    with pytest.raises(Unsupported, match=r"hugepage_limits\[0\].*2MB"):
        linux_resources(asked, host)


def test_hugepage_limits_of_sizes_that_the_host_has_the_last_wins() -> None:
    limits = tuple(HugepageLimit(page_size=size, limit_bytes=number) for size, number in (("2MB", 1), ("2MB", 0)))
    asked = Resources(hugepage_limits=(*limits, HugepageLimit(page_size="1GB", limit_bytes=0)))
    host = capable_host(cgroup_version=2, cgroup_controllers=frozenset({"hugetlb"}), hugepage_sizes=("2MB",))
    assert linux_resources(asked, host).hugepage_limits == (schema.HugepageLimit(page_size="2MB", limit=0),)


def test_unified_is_for_v2() -> None:
    asked = Resources(unified={"memory.high": "max", "hugetlb.2MB.max": "0"})
    assert linux_resources(asked, V2).unified == asked.unified
    with pytest.raises(InvalidInput, match=r"linux\.resources\.unified"):
        linux_resources(asked, V1)


def test_on_v2_no_swap_is_said_by_the_file_too() -> None:
    equal = Resources(memory_limit_bytes=9, memory_swap_limit_bytes=9)
    assert linux_resources(equal, V2).unified == {"memory.swap.max": "0"}
    assert linux_resources(Resources(memory_limit_bytes=9), V2).unified == {"memory.swap.max": "0"}
    assert linux_resources(equal, V1).unified == {}
    assert linux_resources(Resources(memory_limit_bytes=9, memory_swap_limit_bytes=10), V2).unified == {}
    assert linux_resources(Resources(memory_limit_bytes=-1, memory_swap_limit_bytes=-1), V2).unified == {}
    asked = Resources(memory_limit_bytes=9, unified={"memory.swap.max": "7"})
    assert linux_resources(asked, V2).unified == {"memory.swap.max": "7"}


def test_unified_is_of_controllers_that_the_host_has() -> None:
    assert linux_resources(Resources(unified={"cgroup.max.depth": "3"}), V2).unified
    with pytest.raises(InvalidInput, match=r"linux\.resources\.unified: 'io\.weight': .* no controller 'io'"):
        linux_resources(Resources(unified={"io.weight": "100"}), V2)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (Resources(cpu_shares=-1), "cpu_shares"),
        (Resources(cpu_period_us=-1), "cpu_period"),
        (Resources(cpu_period_us=999), "cpu_period"),
        (Resources(cpu_period_us=1_000_001), "cpu_period"),
        (Resources(cpu_quota_us=-2), "cpu_quota"),
        (Resources(cpu_quota_us=999), "cpu_quota"),
        (Resources(cpuset_cpus="0-"), "cpuset_cpus"),
        (Resources(cpuset_cpus="0,3-1"), "cpuset_cpus"),
        (Resources(cpuset_mems="a"), "cpuset_mems"),
        (Resources(cpuset_cpus="0\n"), "cpuset_cpus"),
        (Resources(cpuset_cpus="0-999999"), "cpuset_cpus"),
        (Resources(memory_limit_bytes=-2), "memory_limit_in_bytes"),
        (Resources(memory_swap_limit_bytes=-2), "memory_swap_limit_in_bytes"),
        (Resources(memory_limit_bytes=10, memory_swap_limit_bytes=9), "memory_swap_limit_in_bytes"),
        (Resources(memory_limit_bytes=-1, memory_swap_limit_bytes=9), "memory_swap_limit_in_bytes"),
        (Resources(memory_swap_limit_bytes=9), "memory_swap_limit_in_bytes"),
        (Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=-1),)), "hugepage_limits"),
        (Resources(unified={"../x": "1"}), "unified"),
        (Resources(unified={"memory.high/..": "1"}), "unified"),
        (Resources(unified={"memory.high": "\0"}), "unified"),
    ],
)
def test_bad_numbers_are_refused_by_field(asked: Resources, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"linux\.resources\.{field}"):
        linux_resources(asked, V2)
