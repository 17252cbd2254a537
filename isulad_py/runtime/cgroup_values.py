"""What the files of a cgroup say. Pure: text in, numbers out; what is not as documented is None, never an error.

Sources: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, cgroup-v1/cpuacct.rst, accounting/psi.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isulad_py.model.stats import CgroupSample, Pressure, Psi

UNLIMITED: Final = 1 << 60
"""v1 writes "no limit" as the largest multiple of the page size below 2**63, which varies by architecture."""
MAX_DIGITS: Final = 20


def number(text: bytes | None) -> int | None:
    """A file with one number."""
    if text is None:
        return None
    text = text.strip()
    return int(text) if text.isdigit() and len(text) <= MAX_DIGITS else None


def limit(value: int | None) -> int | None:
    """None where there is no limit. (v2's "max" is no number, and None already.)"""
    return None if value is None or value >= UNLIMITED else value


def pairs(text: bytes | None) -> dict[bytes, int]:
    """A file of lines "key value"; other lines are passed over."""
    found: dict[bytes, int] = {}
    for line in (text or b"").split(b"\n"):
        key, _, value = line.partition(b" ")
        if value.isdigit() and len(value) <= MAX_DIGITS:
            found[key] = int(value)
    return found


def lines(text: bytes | None) -> int | None:
    """How many lines a file has."""
    return None if text is None else text.count(b"\n")


def psi(text: bytes | None) -> Psi | None:
    """A *.pressure file; None where the kernel keeps none."""
    found: dict[bytes, Pressure] = {}
    for line in (text or b"").split(b"\n"):
        kind, _, rest = line.partition(b" ")
        pressure = _pressure(rest)
        if pressure is not None and kind in {b"some", b"full"}:
            found[kind] = pressure
    if not found:
        return None
    return Psi(some=found.get(b"some"), full=found.get(b"full"))


def _pressure(text: bytes) -> Pressure | None:
    fields: dict[bytes, bytes] = {}
    for word in text.split():
        key, _, value = word.partition(b"=")
        fields[key] = value
    try:
        return Pressure(
            total_us=int(fields[b"total"]),
            avg10=float(fields[b"avg10"]),
            avg60=float(fields[b"avg60"]),
            avg300=float(fields[b"avg300"]),
        )
    except (KeyError, ValueError):
        return None


def sample_v1(files: Mapping[str, bytes], *, timestamp: int, tick_ns: int, processes: int | None) -> CgroupSample:
    """From files by name, those that are there: of cpuacct, memory and pids, and pressure from a cgroup2 tree."""
    ticks = pairs(files.get("cpuacct.stat"))
    memory = pairs(files.get("memory.stat"))
    usage = number(files.get("memory.usage_in_bytes"))
    pids = number(files.get("pids.current"))
    memory_limit = limit(number(files.get("memory.limit_in_bytes")))
    return CgroupSample(
        timestamp=timestamp,
        cpu_usage_ns=number(files.get("cpuacct.usage")),
        cpu_user_ns=_times(ticks.get(b"user"), tick_ns),
        cpu_system_ns=_times(ticks.get(b"system"), tick_ns),
        cpu_psi=psi(files.get("cpu.pressure")),
        memory_usage_bytes=usage,
        memory_working_set_bytes=_working_set(usage, memory.get(b"total_inactive_file")),
        memory_rss_bytes=memory.get(b"total_rss"),
        memory_cache_bytes=memory.get(b"total_cache"),
        memory_limit_bytes=memory_limit,
        memory_page_faults=memory.get(b"total_pgfault"),
        memory_major_page_faults=memory.get(b"total_pgmajfault"),
        memory_psi=psi(files.get("memory.pressure")),
        swap_usage_bytes=memory.get(b"total_swap"),
        swap_limit_bytes=_swap_limit(memory),
        io_psi=psi(files.get("io.pressure")),
        pids_current=pids,
        processes=processes,
        threads_current=pids,
    )


def _swap_limit(memory: Mapping[bytes, int]) -> int | None:
    """v1 limits memory and swap together. Without swap accounting the file names no such limit."""
    both = limit(memory.get(b"hierarchical_memsw_limit"))
    alone = limit(memory.get(b"hierarchical_memory_limit"))
    return None if both is None or alone is None else max(0, both - alone)


def sample_v2(files: Mapping[str, bytes], *, timestamp: int, processes: int | None) -> CgroupSample:
    """From files by name, those that are there."""
    cpu = pairs(files.get("cpu.stat"))
    memory = pairs(files.get("memory.stat"))
    usage = number(files.get("memory.current"))
    pids = number(files.get("pids.current"))
    return CgroupSample(
        timestamp=timestamp,
        cpu_usage_ns=_times(cpu.get(b"usage_usec"), 1000),
        cpu_user_ns=_times(cpu.get(b"user_usec"), 1000),
        cpu_system_ns=_times(cpu.get(b"system_usec"), 1000),
        cpu_psi=psi(files.get("cpu.pressure")),
        memory_usage_bytes=usage,
        memory_working_set_bytes=_working_set(usage, memory.get(b"inactive_file")),
        memory_rss_bytes=memory.get(b"anon"),
        memory_cache_bytes=memory.get(b"file"),
        memory_limit_bytes=limit(number(files.get("memory.max"))),
        memory_page_faults=memory.get(b"pgfault"),
        memory_major_page_faults=memory.get(b"pgmajfault"),
        memory_psi=psi(files.get("memory.pressure")),
        swap_usage_bytes=number(files.get("memory.swap.current")),
        swap_limit_bytes=limit(number(files.get("memory.swap.max"))),
        io_psi=psi(files.get("io.pressure")),
        pids_current=pids,
        processes=processes,
        threads_current=pids,
    )


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _working_set(usage: int | None, inactive_file: int | None) -> int | None:
    """What cannot be dropped under pressure at once; the kubelet evicts by it."""
    return None if usage is None else max(0, usage - (inactive_file or 0))
