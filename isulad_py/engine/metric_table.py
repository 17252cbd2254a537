"""Every metric of pods and containers, by the names and labels that kubelets know from cAdvisor. Pure.

A metric whose reading is not known here is left out: it would be a zero that says something else. Seconds are whole
ones, because CRI's values are integers. What Linux counts for no cgroup, but kubelets demand (their test of
/metrics/cadvisor), is zero as in cAdvisor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from isulad_py.model.metrics import (
    CgroupDetails,
    DeviceIo,
    FilesystemCapacity,
    MetricDescriptor,
    MetricKind,
    MetricValue,
)
from isulad_py.model.resources import Resources
from isulad_py.model.stats import LOOPBACK, CgroupSample, FilesystemUsage, InterfaceSample, Psi

SUBJECT_KEYS: Final = ("container", "id", "image", "name", "namespace", "pod")
"""Labels of every metric: what it is about. `id` is the cgroup, `name` the container's id, as cAdvisor has them."""

SECOND: Final = 1_000_000_000
COUNTER, GAUGE = MetricKind.COUNTER, MetricKind.GAUGE


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read of one container."""

    now: int
    started_at: int
    resources: Resources
    sample: CgroupSample
    details: CgroupDetails
    writable_layer: FilesystemUsage | None
    filesystem: FilesystemCapacity


Labelled = tuple[tuple[str, ...], int]
"""Values of a metric's own labels, and its value."""
Source = Callable[[Reading], "int | Iterable[Labelled] | None"]


class _Metric(msgspec.Struct, frozen=True):
    descriptor: MetricDescriptor
    source: Source


def _metric(name: str, kind: MetricKind, help_: str, source: Source, keys: tuple[str, ...] = ()) -> _Metric:
    return _Metric(MetricDescriptor(name=name, help=help_, kind=kind, label_keys=(*SUBJECT_KEYS, *keys)), source)


def _seconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // SECOND


def _total(value: int | None) -> list[Labelled]:
    return [] if value is None else [(("total",), value)]


def _limited(reading: Reading, value: int | None) -> int | None:
    """Of the CPU bandwidth controller, which does nothing for a container without a quota."""
    return value if reading.details.cpu_quota_us is not None else None


def _faults(reading: Reading) -> Iterable[Labelled]:
    sample, details = reading.sample, reading.details
    for kind, scope, value in (
        ("pgfault", "container", details.own_page_faults),
        ("pgfault", "hierarchy", sample.memory_page_faults),
        ("pgmajfault", "container", details.own_major_page_faults),
        ("pgmajfault", "hierarchy", sample.memory_major_page_faults),
    ):
        if value is not None:
            yield (kind, scope), value


def _of_filesystem(value: Callable[[Reading], int | None]) -> Source:
    def source(reading: Reading) -> Iterable[Labelled]:
        found = value(reading)
        return [] if found is None else [((reading.filesystem.device,), found)]

    return source


def _devices(reading: Reading) -> Iterable[DeviceIo]:
    """Who has touched no device has done nothing to that of its writable layer."""
    if reading.details.io is None:
        return ()
    under = reading.filesystem
    return reading.details.io or (DeviceIo(device=under.device, major=under.major, minor=under.minor),)


def _by_device(value: Callable[[DeviceIo], int]) -> Source:
    return lambda reading: [((io.device,), value(io)) for io in _devices(reading)]


def _device_bytes(reading: Reading) -> Iterable[Labelled]:
    for io in _devices(reading):
        numbers = (io.device, str(io.major), str(io.minor))
        yield (*numbers, "Read"), io.read_bytes
        yield (*numbers, "Write"), io.write_bytes


def _pressure(noun: str, word: str, psi: Callable[[CgroupSample], Psi | None]) -> tuple[_Metric, _Metric]:
    def stalled(reading: Reading) -> int | None:
        found = psi(reading.sample)
        return None if found is None or found.full is None else found.full.total_us // 1_000_000

    def waiting(reading: Reading) -> int | None:
        found = psi(reading.sample)
        return None if found is None or found.some is None else found.some.total_us // 1_000_000

    return (
        _metric(
            f"container_pressure_{noun}_stalled_seconds_total",
            COUNTER,
            f"How long no task could go on for lack of {word}, in seconds.",
            stalled,
        ),
        _metric(
            f"container_pressure_{noun}_waiting_seconds_total",
            COUNTER,
            f"How long some task waited for {word}, in seconds.",
            waiting,
        ),
    )


def _uncounted(words: str, kind: MetricKind, help_: str) -> _Metric:
    help_ = f"{help_}: 0, for Linux counts it for no cgroup."
    return _metric(f"container_fs_{words}", kind, help_, _of_filesystem(lambda _: 0), ("device",))


_UNCOUNTED: Final = (
    _uncounted("io_current", GAUGE, "Operations under way"),
    _uncounted("io_time_seconds_total", COUNTER, "Seconds in which some operation was under way"),
    _uncounted("io_time_weighted_seconds_total", COUNTER, "The same, times operations"),
    _uncounted("read_seconds_total", COUNTER, "Seconds of reading"),
    _uncounted("reads_merged_total", COUNTER, "Reads that were merged with others"),
    _uncounted("sector_reads_total", COUNTER, "Sectors read"),
    _uncounted("sector_writes_total", COUNTER, "Sectors written"),
    _uncounted("write_seconds_total", COUNTER, "Seconds of writing"),
    _uncounted("writes_merged_total", COUNTER, "Writes that were merged with others"),
)


def _hugepages(reading: Reading) -> Iterable[Labelled]:
    return [((each.page_size,), each.usage_bytes) for each in reading.details.hugepages]


def _most_hugepages(reading: Reading) -> Iterable[Labelled]:
    return [
        ((each.page_size,), each.max_usage_bytes)
        for each in reading.details.hugepages
        if each.max_usage_bytes is not None
    ]


def _open_files_limit(reading: Reading) -> Iterable[Labelled]:
    limit = reading.details.open_files_soft_limit
    return [] if limit is None else [(("max_open_files",), limit)]


CONTAINER_METRICS: Final = (
    _metric("container_last_seen", GAUGE, "When the container was last seen, in seconds since 1970.",
            lambda r: r.now // SECOND),
    _metric("container_start_time_seconds", GAUGE, "Start of the container in seconds since 1970.",
            lambda r: r.started_at // SECOND if r.started_at else None),
    # CPU
    _metric("container_cpu_user_seconds_total", COUNTER, "CPU time in user mode in seconds.",
            lambda r: _seconds(r.sample.cpu_user_ns)),
    _metric("container_cpu_system_seconds_total", COUNTER, "CPU time in the kernel in seconds.",
            lambda r: _seconds(r.sample.cpu_system_ns)),
    _metric("container_cpu_usage_seconds_total", COUNTER, "CPU time in seconds.",
            lambda r: _total(_seconds(r.sample.cpu_usage_ns)), ("cpu",)),
    _metric("container_cpu_cfs_periods_total", COUNTER, "Periods of the CPU bandwidth controller that have passed.",
            lambda r: _limited(r, r.details.cpu_periods)),
    _metric("container_cpu_cfs_throttled_periods_total", COUNTER, "Periods in which the container was held back.",
            lambda r: _limited(r, r.details.cpu_throttled_periods)),
    _metric("container_cpu_cfs_throttled_seconds_total", COUNTER, "How long the container was held back, in seconds.",
            lambda r: _limited(r, _seconds(r.details.cpu_throttled_ns))),
    # Memory
    _metric("container_memory_cache", GAUGE, "Page cache in bytes.", lambda r: r.sample.memory_cache_bytes),
    _metric("container_memory_rss", GAUGE, "Anonymous memory in bytes.", lambda r: r.sample.memory_rss_bytes),
    _metric("container_memory_kernel_usage", GAUGE, "Kernel memory in bytes.",
            lambda r: r.details.memory_kernel_bytes),
    _metric("container_memory_mapped_file", GAUGE, "Mapped files in bytes.",
            lambda r: r.details.memory_mapped_file_bytes),
    _metric("container_memory_swap", GAUGE, "Swap in use in bytes.", lambda r: r.sample.swap_usage_bytes),
    _metric("container_memory_failcnt", COUNTER, "How often the memory limit was hit.",
            lambda r: r.details.memory_limit_hits),
    _metric("container_memory_usage_bytes", GAUGE, "Memory in use in bytes, page cache included.",
            lambda r: r.sample.memory_usage_bytes),
    _metric("container_memory_max_usage_bytes", GAUGE, "The most memory that was in use, in bytes.",
            lambda r: r.details.memory_most_used_bytes),
    _metric("container_memory_working_set_bytes", GAUGE, "Memory in use without what can be dropped at once, in bytes.",
            lambda r: r.sample.memory_working_set_bytes),
    _metric("container_memory_failures_total", COUNTER, "Page faults.", _faults, ("failure_type", "scope")),
    _metric("container_oom_events_total", COUNTER, "Processes that the kernel killed for memory.",
            lambda r: r.details.oom_kills),
    _metric("container_hugetlb_usage_bytes", GAUGE, "Huge pages in use in bytes.", _hugepages, ("pagesize",)),
    _metric("container_hugetlb_max_usage_bytes", GAUGE, "The most huge pages that were in use, in bytes.",
            _most_hugepages, ("pagesize",)),
    # File systems
    # These two as cAdvisor has them for a container: of the layer, not of the disk.
    _metric("container_fs_inodes_free", GAUGE, "Inodes that are set aside for the writable layer: none.",
            _of_filesystem(lambda r: 0 if r.writable_layer else None), ("device",)),
    _metric("container_fs_inodes_total", GAUGE, "Inodes of the writable layer.",
            _of_filesystem(lambda r: r.writable_layer.inodes_used if r.writable_layer else None), ("device",)),
    _metric("container_fs_limit_bytes", GAUGE, "Size of the file system of the writable layer in bytes.",
            _of_filesystem(lambda r: r.filesystem.total_bytes), ("device",)),
    _metric("container_fs_usage_bytes", GAUGE, "Size of the writable layer in bytes.",
            _of_filesystem(lambda r: r.writable_layer.used_bytes if r.writable_layer else None), ("device",)),
    _metric("container_fs_reads_bytes_total", COUNTER, "Bytes read from a device.",
            _by_device(lambda io: io.read_bytes), ("device",)),
    _metric("container_fs_reads_total", COUNTER, "Reads from a device.", _by_device(lambda io: io.reads), ("device",)),
    _metric("container_fs_writes_bytes_total", COUNTER, "Bytes written to a device.",
            _by_device(lambda io: io.write_bytes), ("device",)),
    _metric("container_fs_writes_total", COUNTER, "Writes to a device.", _by_device(lambda io: io.writes), ("device",)),
    *_UNCOUNTED,
    _metric("container_blkio_device_usage_total", COUNTER, "Bytes read from and written to a device, by operation.",
            _device_bytes, ("device", "major", "minor", "operation")),
    # Processes
    _metric("container_processes", GAUGE, "Processes.", lambda r: r.sample.processes),
    _metric("container_threads", GAUGE, "Threads.", lambda r: r.sample.threads_current),
    _metric("container_threads_max", GAUGE, "The most threads that there may be; 0 is no limit.",
            lambda r: None if r.sample.threads_current is None else r.details.threads_limit or 0),
    _metric("container_file_descriptors", GAUGE, "Open file descriptors.", lambda r: r.details.descriptors),
    _metric("container_sockets", GAUGE, "Open sockets.", lambda r: r.details.sockets),
    _metric("container_ulimits_soft", GAUGE, "Soft limits of the first process.", _open_files_limit, ("ulimit",)),
    # Limits
    _metric("container_spec_cpu_period", GAUGE, "Period of the CPU bandwidth controller in microseconds.",
            lambda r: r.details.cpu_period_us),
    _metric("container_spec_cpu_quota", GAUGE, "CPU time in each period in microseconds.",
            lambda r: r.details.cpu_quota_us),
    # A weight of cgroup v2 does not tell the shares that it came from; the request does.
    _metric("container_spec_cpu_shares", GAUGE, "CPU shares.",
            lambda r: r.resources.cpu_shares or r.details.cpu_shares),
    _metric("container_spec_memory_limit_bytes", GAUGE, "Memory limit in bytes; 0 is no limit.",
            lambda r: None if r.sample.memory_usage_bytes is None else r.sample.memory_limit_bytes or 0),
    _metric("container_spec_memory_reservation_limit_bytes", GAUGE, "Memory that is reserved in bytes; 0 is none.",
            lambda r: None if r.sample.memory_usage_bytes is None else r.details.memory_reservation_bytes or 0),
    _metric("container_spec_memory_swap_limit_bytes", GAUGE,
            "Limit of swap in bytes, on cgroup v1 of memory and swap together; 0 is no limit.",
            lambda r: None if r.sample.memory_usage_bytes is None else r.details.memory_swap_limit_bytes or 0),
    *_pressure("cpu", "CPU", lambda sample: sample.cpu_psi),
    *_pressure("memory", "memory", lambda sample: sample.memory_psi),
    *_pressure("io", "IO", lambda sample: sample.io_psi),
)  # fmt: skip


def _network(name: str, help_: str) -> MetricDescriptor:
    keys = (*SUBJECT_KEYS, "interface")
    return MetricDescriptor(name=f"container_network_{name}_total", help=help_, kind=COUNTER, label_keys=keys)


POD_METRICS: Final[tuple[tuple[MetricDescriptor, Callable[[InterfaceSample], int]], ...]] = (
    (_network("receive_bytes", "Bytes received."), lambda i: i.rx_bytes),
    (_network("receive_packets", "Packets received."), lambda i: i.rx_packets),
    (_network("receive_packets_dropped", "Packets dropped that came in."), lambda i: i.rx_dropped),
    (_network("receive_errors", "Errors while receiving."), lambda i: i.rx_errors),
    (_network("transmit_bytes", "Bytes sent."), lambda i: i.tx_bytes),
    (_network("transmit_packets", "Packets sent."), lambda i: i.tx_packets),
    (_network("transmit_packets_dropped", "Packets dropped that went out."), lambda i: i.tx_dropped),
    (_network("transmit_errors", "Errors while sending."), lambda i: i.tx_errors),
)

DESCRIPTORS: Final = (
    *(metric.descriptor for metric in CONTAINER_METRICS),
    *(descriptor for descriptor, _ in POD_METRICS),
)


def container_values(reading: Reading) -> list[MetricValue]:
    found = []
    for metric in CONTAINER_METRICS:
        values = metric.source(reading)
        if isinstance(values, int):
            found.append(MetricValue(metric.descriptor, (), values))
        elif values is not None:
            found += [MetricValue(metric.descriptor, labels, value) for labels, value in values]
    return found


def pod_values(interfaces: Iterable[InterfaceSample]) -> list[MetricValue]:
    """cAdvisor has none of loopback."""
    return [
        MetricValue(descriptor, (interface.name,), value(interface))
        for interface in interfaces
        if interface.name != LOOPBACK
        for descriptor, value in POD_METRICS
    ]
