"""Resource limits, both ways."""

from __future__ import annotations

import re
from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.wire.translate import checks, presence

OOM_SCORE_MAX: Final = 1000
UNLIMITED: Final = -1
PAGE_SIZE: Final = re.compile(r"[1-9][0-9]{0,9}[KMGTP]?B")
"""As kubelets, runtimes and the kernel's files have it: 2MB, 1GB."""
MOST_PAGE_SIZES: Final = 256
MOST_UNIFIED: Final = 1024


def resources(message: cri.LinuxContainerResources, field: str) -> Resources:
    checks.at_most(MOST_PAGE_SIZES, message.hugepage_limits, f"{field}.hugepage_limits")
    checks.at_most(MOST_UNIFIED, message.unified, f"{field}.unified")
    return Resources(
        cpu_period_us=checks.at_least(0, message.cpu_period, f"{field}.cpu_period"),
        cpu_quota_us=checks.at_least(UNLIMITED, message.cpu_quota, f"{field}.cpu_quota"),
        cpu_shares=checks.at_least(0, message.cpu_shares, f"{field}.cpu_shares"),
        memory_limit_bytes=checks.at_least(UNLIMITED, message.memory_limit_in_bytes, f"{field}.memory_limit_in_bytes"),
        memory_swap_limit_bytes=checks.at_least(
            UNLIMITED, message.memory_swap_limit_in_bytes, f"{field}.memory_swap_limit_in_bytes"
        ),
        oom_score_adj=_oom_score(message.oom_score_adj, f"{field}.oom_score_adj"),
        cpuset_cpus=checks.name(message.cpuset_cpus, f"{field}.cpuset_cpus"),
        cpuset_mems=checks.name(message.cpuset_mems, f"{field}.cpuset_mems"),
        hugepage_limits=tuple(
            _hugepage_limit(limit, f"{field}.hugepage_limits[{index}]")
            for index, limit in enumerate(message.hugepage_limits)
        ),
        unified={
            _cgroup_file(key, field): _cgroup_value(value, f"{field}.unified[{key}]")
            for key, value in message.unified.items()
        },
    )


def resources_if_given(message: cri.LinuxContainerResources, field: str) -> Resources | None:
    return resources(message, field) if presence.given(message) else None


def _oom_score(value: int, field: str) -> int:
    if not -OOM_SCORE_MAX <= value <= OOM_SCORE_MAX:
        raise InvalidInput(f"{field}: {value} is not between -{OOM_SCORE_MAX} and {OOM_SCORE_MAX}")
    return value


def _hugepage_limit(message: cri.HugepageLimit, field: str) -> HugepageLimit:
    """The size becomes part of the name of a file in the container's cgroup."""
    size = checks.required_name(message.page_size, f"{field}.page_size")
    if not PAGE_SIZE.fullmatch(size):
        raise InvalidInput(f"{field}.page_size: {size[:80]!r} is not a size like 2MB")
    return HugepageLimit(page_size=size, limit_bytes=message.limit)


def _cgroup_file(key: str, field: str) -> str:
    """The key becomes the name of a file in the container's cgroup, and of no other file."""
    checks.required_name(key, f"{field}.unified")
    if "/" in key or key in {".", ".."}:
        raise InvalidInput(f"{field}.unified: {key!r} is not the name of a cgroup file")
    return key


def _cgroup_value(value: str, field: str) -> str:
    """May have several lines."""
    if len(value) > checks.TEXT_MAX:
        raise InvalidInput(f"{field} is longer than {checks.TEXT_MAX} characters")
    return checks.no_nul(value, field)


def resources_message(limits: Resources) -> cri.LinuxContainerResources:
    return cri.LinuxContainerResources(
        cpu_period=limits.cpu_period_us,
        cpu_quota=limits.cpu_quota_us,
        cpu_shares=limits.cpu_shares,
        memory_limit_in_bytes=limits.memory_limit_bytes,
        memory_swap_limit_in_bytes=limits.memory_swap_limit_bytes,
        oom_score_adj=limits.oom_score_adj,
        cpuset_cpus=limits.cpuset_cpus,
        cpuset_mems=limits.cpuset_mems,
        hugepage_limits=[
            cri.HugepageLimit(page_size=limit.page_size, limit=limit.limit_bytes) for limit in limits.hugepage_limits
        ],
        unified=limits.unified,
    )
