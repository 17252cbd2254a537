"""What the engine needs to know of this host, read once."""

from __future__ import annotations

from msgspec import Struct


class HostFacts(Struct, frozen=True, kw_only=True):
    kernel: str
    machine: str
    """As uname says: x86_64, aarch64."""
    boot_id: str
    cgroup_version: int
    """1 (also hybrid) or 2."""
    cgroup_controllers: frozenset[str]
    cgroup_mounts: dict[str, str] = {}
    """Mountpoint by controller (v1) or `unified`."""
    capabilities: tuple[str, ...]
    """What this process itself may hand on (its bounding and permitted sets), as CAP_ names."""
    oom_score_adj: int
    """Our own; without CAP_SYS_RESOURCE nothing lower can be given."""
    can_lower_oom_score: bool
    apparmor: bool
    selinux: bool
    seccomp: bool
    hostname: str
    memory_bytes: int
    swap_bytes: int
    swap_accounting: bool = True
    """Whether cgroups can limit swap (memory.memsw.* or memory.swap.max)."""
    hugepage_sizes: tuple[str, ...] = ()
    """As cgroups name them: 2MB, 1GB."""
    cpus: int = 1
