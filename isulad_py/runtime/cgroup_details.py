"""What further files of a cgroup say, which only metrics need. Pure: text in, numbers out, as in cgroup_values.

Sources: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/ (memory, blkio-controller, hugetlb, pids),
scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from isulad_py.model.metrics import CgroupDetails, DeviceIo, HugepageUsage
from isulad_py.runtime.cgroup_values import limit, number, pairs

_V1_IO: Final = {
    "blkio.throttle.io_service_bytes_recursive": "bytes",
    "blkio.throttle.io_serviced_recursive": "count",
}
V1_FILES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("cpu", ("cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")),
    (
        "memory",
        (
            "memory.failcnt",
            "memory.max_usage_in_bytes",
            "memory.kmem.usage_in_bytes",
            "memory.soft_limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            "memory.oom_control",
        ),
    ),
    ("pids", ("pids.max",)),
    ("blkio", tuple(_V1_IO)),
)
V2_FILES: Final = ("cpu.max", "cpu.weight", "memory.events", "memory.peak", "memory.min", "io.stat", "pids.max")

DeviceName = Callable[[int, int], str]
"""The name of a block device by major and minor number."""


def hugepage_files(sizes: Iterable[str], *, v2: bool) -> tuple[str, ...]:
    words = ("current",) if v2 else ("usage_in_bytes", "max_usage_in_bytes")
    return tuple(f"hugetlb.{size}.{word}" for size in sizes for word in words)


def details_v1(files: Mapping[str, bytes], *, sizes: Sequence[str], device_name: DeviceName) -> CgroupDetails:
    """From files by name, those that are there; memory.stat is among them."""
    cpu, memory = pairs(files.get("cpu.stat")), pairs(files.get("memory.stat"))
    return CgroupDetails(
        cpu_periods=cpu.get(b"nr_periods"),
        cpu_throttled_periods=cpu.get(b"nr_throttled"),
        cpu_throttled_ns=cpu.get(b"throttled_time"),
        cpu_quota_us=number(files.get("cpu.cfs_quota_us")),  # "no limit" is -1, which is no number here
        cpu_period_us=number(files.get("cpu.cfs_period_us")),
        cpu_shares=number(files.get("cpu.shares")),
        memory_limit_hits=number(files.get("memory.failcnt")),
        memory_most_used_bytes=number(files.get("memory.max_usage_in_bytes")),
        memory_kernel_bytes=number(files.get("memory.kmem.usage_in_bytes")),
        memory_mapped_file_bytes=memory.get(b"total_mapped_file"),
        memory_reservation_bytes=limit(number(files.get("memory.soft_limit_in_bytes"))),
        memory_swap_limit_bytes=limit(number(files.get("memory.memsw.limit_in_bytes"))),
        own_page_faults=memory.get(b"pgfault"),
        own_major_page_faults=memory.get(b"pgmajfault"),
        oom_kills=pairs(files.get("memory.oom_control")).get(b"oom_kill"),
        threads_limit=number(files.get("pids.max")),
        io=_io_v1(files, device_name),
        hugepages=_hugepages(files, sizes, "usage_in_bytes", "max_usage_in_bytes"),
    )


def details_v2(files: Mapping[str, bytes], *, sizes: Sequence[str], device_name: DeviceName) -> CgroupDetails:
    """From files by name, those that are there; cpu.stat, memory.stat and memory.swap.max are among them."""
    cpu, memory = pairs(files.get("cpu.stat")), pairs(files.get("memory.stat"))
    events = pairs(files.get("memory.events"))
    throttled_us = cpu.get(b"throttled_usec")
    quota, _, period = files.get("cpu.max", b"").partition(b" ")
    return CgroupDetails(
        cpu_periods=cpu.get(b"nr_periods"),
        cpu_throttled_periods=cpu.get(b"nr_throttled"),
        cpu_throttled_ns=None if throttled_us is None else throttled_us * 1000,
        cpu_quota_us=number(quota),
        cpu_period_us=number(period),
        cpu_shares=_shares(number(files.get("cpu.weight"))),
        memory_limit_hits=events.get(b"max"),
        memory_most_used_bytes=number(files.get("memory.peak")),
        memory_kernel_bytes=memory.get(b"kernel"),
        memory_mapped_file_bytes=memory.get(b"file_mapped"),
        memory_reservation_bytes=number(files.get("memory.min")),
        memory_swap_limit_bytes=number(files.get("memory.swap.max")),
        own_page_faults=memory.get(b"pgfault"),
        own_major_page_faults=memory.get(b"pgmajfault"),
        oom_kills=events.get(b"oom_kill"),
        threads_limit=number(files.get("pids.max")),
        io=_io_v2(files["io.stat"], device_name) if "io.stat" in files else None,
        hugepages=_hugepages(files, sizes, "current", ""),
    )


def _shares(weight: int | None) -> int | None:
    """v1's shares (2 to 262144) for a weight (1 to 10000), as cAdvisor converts."""
    return None if weight is None else 2 + (weight - 1) * 262142 // 9999


def _hugepages(files: Mapping[str, bytes], sizes: Sequence[str], usage: str, most: str) -> tuple[HugepageUsage, ...]:
    found = []
    for size in sizes:
        used = number(files.get(f"hugetlb.{size}.{usage}"))
        if used is not None:
            peak = number(files.get(f"hugetlb.{size}.{most}")) if most else None
            found.append(HugepageUsage(page_size=size, usage_bytes=used, max_usage_bytes=peak))
    return tuple(found)


def _io_v1(files: Mapping[str, bytes], device_name: DeviceName) -> tuple[DeviceIo, ...] | None:
    """Lines "major:minor Read number"; operations other than Read and Write are sums of these two."""
    units = {name: unit for name, unit in _V1_IO.items() if name in files}
    if not units:
        return None
    figures: dict[tuple[int, int], dict[str, int]] = {}
    for name, unit in units.items():
        for line in files[name].splitlines():
            words = line.split()
            device = _device(words[0]) if len(words) == 3 else None
            if device is not None and words[1] in {b"Read", b"Write"} and words[2].isdigit():
                figures.setdefault(device, {})[f"{words[1].decode()} {unit}"] = int(words[2])
    return tuple(
        DeviceIo(
            device=device_name(*device),
            major=device[0],
            minor=device[1],
            read_bytes=seen.get("Read bytes", 0),
            write_bytes=seen.get("Write bytes", 0),
            reads=seen.get("Read count", 0),
            writes=seen.get("Write count", 0),
        )
        for device, seen in figures.items()
    )


def _io_v2(text: bytes, device_name: DeviceName) -> tuple[DeviceIo, ...]:
    """Lines "major:minor rbytes=1 wbytes=2 rios=3 wios=4 ..."."""
    found = []
    for line in text.splitlines():
        first, *rest = line.split() or [b""]
        device = _device(first)
        seen = {key: int(value) for key, _, value in (word.partition(b"=") for word in rest) if value.isdigit()}
        if device is not None and seen:
            found.append(
                DeviceIo(
                    device=device_name(*device),
                    major=device[0],
                    minor=device[1],
                    read_bytes=seen.get(b"rbytes", 0),
                    write_bytes=seen.get(b"wbytes", 0),
                    reads=seen.get(b"rios", 0),
                    writes=seen.get(b"wios", 0),
                )
            )
    return tuple(found)


def _device(text: bytes) -> tuple[int, int] | None:
    major, colon, minor = text.partition(b":")
    return (int(major), int(minor)) if colon and major.isdigit() and minor.isdigit() else None
