"""Resource limits, in CRI's units (LinuxContainerResources)."""

from __future__ import annotations

from msgspec import Struct, field


class HugepageLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    page_size: str
    limit_bytes: int


class Resources(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Zero and empty mean "not specified", as in CRI."""

    cpu_period_us: int = 0
    cpu_quota_us: int = 0
    cpu_shares: int = 0
    memory_limit_bytes: int = 0
    memory_swap_limit_bytes: int = 0
    """Memory and swap together; -1 is unlimited."""
    oom_score_adj: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    hugepage_limits: tuple[HugepageLimit, ...] = ()
    unified: dict[str, str] = field(default_factory=dict)
    """cgroup v2 files by name, verbatim."""
