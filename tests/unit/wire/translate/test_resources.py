from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.wire.translate import resources

COUNT = st.integers(0, 2**63 - 1)
LIMIT = st.integers(-1, 2**63 - 1)
WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/."), min_size=1, max_size=8)
PAGE_SIZE = st.from_regex(resources.PAGE_SIZE, fullmatch=True)


@given(
    st.builds(
        Resources,
        cpu_period_us=COUNT,
        cpu_quota_us=LIMIT,
        cpu_shares=COUNT,
        memory_limit_bytes=LIMIT,
        memory_swap_limit_bytes=LIMIT,
        oom_score_adj=st.integers(-1000, 1000),
        cpuset_cpus=WORD,
        cpuset_mems=WORD,
        hugepage_limits=st.lists(
            st.builds(HugepageLimit, page_size=PAGE_SIZE, limit_bytes=st.integers(0, 2**64 - 1)), max_size=2
        ).map(tuple),
        unified=st.dictionaries(WORD, WORD, max_size=2),
    )
)
def test_limits_go_out_and_come_back(limits: Resources) -> None:
    message = cri.LinuxContainerResources().parse(bytes(resources.resources_message(limits)))
    assert resources.resources(message, "r") == limits


def test_hugepage_limits_of_zero_are_kept(codec: str) -> None:
    """Kubelets send a limit of 0 for every page size of the host."""
    message = cri.LinuxContainerResources(hugepage_limits=[cri.HugepageLimit(page_size="2MB", limit=0)])
    found = resources.resources(cri.LinuxContainerResources().parse(bytes(message)), "r")
    assert found.hugepage_limits == (HugepageLimit(page_size="2MB", limit_bytes=0),)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"cpu_period": -1}, r"^r\.cpu_period: -1"),
        ({"cpu_quota": -2}, r"^r\.cpu_quota: -2"),
        ({"cpu_shares": -1}, r"^r\.cpu_shares: -1"),
        ({"memory_limit_in_bytes": -2}, r"^r\.memory_limit_in_bytes: -2"),
        ({"memory_swap_limit_in_bytes": -2}, r"^r\.memory_swap_limit_in_bytes: -2"),
        ({"oom_score_adj": 1001}, r"^r\.oom_score_adj: 1001"),
        ({"cpuset_cpus": "0\n1"}, r"^r\.cpuset_cpus"),
        ({"cpuset_mems": "\0"}, r"^r\.cpuset_mems"),
        ({"hugepage_limits": [cri.HugepageLimit(limit=1)]}, r"^r\.hugepage_limits\[0\]\.page_size is empty"),
        ({"unified": {"../memory.max": "1"}}, r"^r\.unified: '\.\./memory\.max'"),
        ({"unified": {"..": "1"}}, r"^r\.unified: '\.\.'"),
        (
            {"hugepage_limits": [cri.HugepageLimit(page_size="../2MB")]},
            r"^r\.hugepage_limits\[0\]\.page_size: '\.\./2MB'",
        ),
        (
            {"hugepage_limits": [cri.HugepageLimit(page_size="2MB")] * 257},
            r"^r\.hugepage_limits: 257 are more than 256",
        ),
        ({"unified": {"memory.max": "\0"}}, r"^r\.unified\[memory\.max\] has a NUL"),
        ({"unified": {"memory.max": "1" * 4096}}, r"^r\.unified\[memory\.max\] is longer than 4095"),
        ({"unified": {f"memory.{n}": "1" for n in range(1025)}}, r"^r\.unified: 1025 are more than 1024"),
    ],
)
def test_refusals_name_the_field(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        resources.resources(cri.LinuxContainerResources(**fields), "r")
