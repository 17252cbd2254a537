"""Samples of what containers and pods use. `None` means "not known here", which is not zero."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field


class Pressure(Struct, frozen=True, kw_only=True):
    """One line of a cgroup's *.pressure file (kernel, accounting/psi)."""

    total_us: int
    avg10: float
    avg60: float
    avg300: float


class Psi(Struct, frozen=True, kw_only=True):
    some: Pressure | None = None
    full: Pressure | None = None


class CgroupSample(Struct, frozen=True, kw_only=True):
    """One reading of a cgroup; the time is nanoseconds since 1970."""

    timestamp: int
    cpu_usage_ns: int | None = None
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    cpu_psi: Psi | None = None
    memory_usage_bytes: int | None = None
    memory_working_set_bytes: int | None = None
    memory_rss_bytes: int | None = None
    memory_cache_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """None where there is no limit."""
    memory_page_faults: int | None = None
    memory_major_page_faults: int | None = None
    memory_psi: Psi | None = None
    swap_usage_bytes: int | None = None
    swap_limit_bytes: int | None = None
    io_psi: Psi | None = None
    pids_current: int | None = None
    """What the pids controller counts against its limit: threads."""
    processes: int | None = None
    """Of the cgroup and all below it."""
    threads_current: int | None = None


class FilesystemUsage(Struct, frozen=True, kw_only=True):
    timestamp: int
    mountpoint: str
    used_bytes: int
    inodes_used: int


LOOPBACK: Final = "lo"


class InterfaceSample(Struct, frozen=True, kw_only=True):
    name: str
    rx_bytes: int = 0
    rx_errors: int = 0
    rx_packets: int = 0
    rx_dropped: int = 0
    tx_bytes: int = 0
    tx_errors: int = 0
    tx_packets: int = 0
    tx_dropped: int = 0


class ContainerSample(Struct, frozen=True, kw_only=True):
    """A container's cgroup and writable layer, with the CPU rate since the sample before."""

    container_id: str
    cgroup: CgroupSample
    nano_cores: int | None = None
    writable_layer: FilesystemUsage | None = None


class PodSample(Struct, frozen=True, kw_only=True):
    pod_id: str
    timestamp: int = 0
    """When the interfaces were read, in nanoseconds since 1970; the cgroups have their own."""
    cgroup: CgroupSample | None
    nano_cores: int | None = None
    interfaces: tuple[InterfaceSample, ...] = ()
    process_count: int | None = None
    containers: tuple[ContainerSample, ...] = field(default_factory=tuple)
