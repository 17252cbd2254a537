"""The document of `update --resources -`: what is not specified is not in it."""

from __future__ import annotations

import msgspec

from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.runtime.resources import update_document

MIB = 1024 * 1024


def test_nothing_specified_is_an_empty_document() -> None:
    assert msgspec.json.decode(update_document(Resources())) == {}


def test_every_field() -> None:
    resources = Resources(
        cpu_period_us=100_000,
        cpu_quota_us=50_000,
        cpu_shares=512,
        memory_limit_bytes=64 * MIB,
        memory_swap_limit_bytes=-1,
        cpuset_cpus="0-1",
        cpuset_mems="0",
        hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=4 * MIB),),
        unified={"memory.high": "1000"},
    )
    assert msgspec.json.decode(update_document(resources)) == {
        "memory": {"limit": 64 * MIB, "swap": -1},
        "cpu": {"shares": 512, "quota": 50_000, "period": 100_000, "cpus": "0-1", "mems": "0"},
        "hugepageLimits": [{"pageSize": "2MB", "limit": 4 * MIB}],
        "unified": {"memory.high": "1000"},
    }


def test_on_v2_no_swap_is_said_by_the_file_too() -> None:
    equal = Resources(memory_limit_bytes=MIB, memory_swap_limit_bytes=MIB)
    assert msgspec.json.decode(update_document(equal, v2=True))["unified"] == {"memory.swap.max": "0"}
    assert "unified" not in msgspec.json.decode(update_document(equal))
    assert "unified" not in msgspec.json.decode(update_document(Resources(memory_limit_bytes=MIB), v2=True))


def test_a_memory_limit_above_the_v1_limit_with_swap_raises_that_along() -> None:
    raised = update_document(Resources(memory_limit_bytes=64 * MIB), memory_and_swap_now=32 * MIB)
    assert msgspec.json.decode(raised) == {"memory": {"limit": 64 * MIB, "swap": 64 * MIB}}
    below = update_document(Resources(memory_limit_bytes=16 * MIB), memory_and_swap_now=32 * MIB)
    assert msgspec.json.decode(below) == {"memory": {"limit": 16 * MIB}}
    given = update_document(
        Resources(memory_limit_bytes=64 * MIB, memory_swap_limit_bytes=128 * MIB), memory_and_swap_now=32 * MIB
    )
    assert msgspec.json.decode(given) == {"memory": {"limit": 64 * MIB, "swap": 128 * MIB}}
