"""Metrics of pods and containers (CRI ListPodSandboxMetrics), and the readings that only they need."""

from __future__ import annotations

import enum
from typing import NamedTuple

from msgspec import Struct


class MetricKind(enum.IntEnum):
    """CRI MetricType."""

    COUNTER = 0
    GAUGE = 1


class MetricDescriptor(Struct, frozen=True, kw_only=True):
    name: str
    help: str
    kind: MetricKind
    label_keys: tuple[str, ...]


class MetricValue(NamedTuple):
    descriptor: MetricDescriptor
    labels: tuple[str, ...]
    """Values of those of the descriptor's labels that are not its subject's."""
    value: int


class DeviceIo(Struct, frozen=True, kw_only=True):
    """What a cgroup read from and wrote to one block device."""

    device: str
    """As in /dev, or `major:minor` where the device has gone."""
    major: int
    minor: int
    read_bytes: int = 0
    write_bytes: int = 0
    reads: int = 0
    writes: int = 0


class HugepageUsage(Struct, frozen=True, kw_only=True):
    page_size: str
    usage_bytes: int
    max_usage_bytes: int | None = None
    """cgroup v2 does not tell."""


class CgroupDetails(Struct, frozen=True, kw_only=True):
    """What CgroupSample leaves out because nobody asks for it every ten seconds. `None` means "not known here"."""

    cpu_periods: int | None = None
    cpu_throttled_periods: int | None = None
    cpu_throttled_ns: int | None = None
    cpu_quota_us: int | None = None
    """None where there is no limit."""
    cpu_period_us: int | None = None
    cpu_shares: int | None = None
    memory_limit_hits: int | None = None
    memory_most_used_bytes: int | None = None
    memory_kernel_bytes: int | None = None
    memory_mapped_file_bytes: int | None = None
    memory_reservation_bytes: int | None = None
    memory_swap_limit_bytes: int | None = None
    """None where there is no limit. On v1 of memory and swap together, on v2 of swap alone, as the files have it."""
    own_page_faults: int | None = None
    """Without those of cgroups below."""
    own_major_page_faults: int | None = None
    oom_kills: int | None = None
    threads_limit: int | None = None
    """None where there is no limit."""
    io: tuple[DeviceIo, ...] | None = None
    hugepages: tuple[HugepageUsage, ...] = ()
    descriptors: int | None = None
    """Open files of all processes."""
    sockets: int | None = None
    open_files_soft_limit: int | None = None
    """Of the first process."""


class FilesystemCapacity(Struct, frozen=True, kw_only=True):
    """Of a whole file system, whoever uses it."""

    device: str
    major: int
    minor: int
    total_bytes: int
