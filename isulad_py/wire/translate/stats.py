"""What containers and pods use, as bytes: these come by the hundred.

What is not known stays absent, which is not zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from isulad_py.model.stats import (
    LOOPBACK,
    CgroupSample,
    ContainerSample,
    FilesystemUsage,
    InterfaceSample,
    PodSample,
    Pressure,
    Psi,
)
from isulad_py.wire.protobuf import boxed, message, number, real, text


def container_stats(attributes: bytes, sample: ContainerSample) -> bytes:
    """A ContainerStats; `attributes` is its first field."""
    cgroup = sample.cgroup
    stamp = number(1, cgroup.timestamp)
    return b"".join(
        [
            attributes,
            _cpu(2, stamp, cgroup, sample.nano_cores),
            _memory(3, stamp, cgroup),
            _filesystem(4, sample.writable_layer),
            _swap(5, stamp, cgroup),
            _io(6, stamp, cgroup),
        ]
    )


def pod_stats(attributes: bytes, sample: PodSample, members: Mapping[str, bytes]) -> bytes:
    """A PodSandboxStats; `attributes` is its first field, and `members` has that of each of the pod's containers by id.

    A sample of a container that has gone meanwhile is left out.
    """
    parts = [_network(3, sample)]
    if sample.cgroup is not None:
        stamp = number(1, sample.cgroup.timestamp)
        parts = [
            _cpu(1, stamp, sample.cgroup, sample.nano_cores),
            _memory(2, stamp, sample.cgroup),
            *parts,
            message(4, stamp, boxed(2, sample.process_count)),
        ]
    parts += [
        message(5, container_stats(members[part.container_id], part))
        for part in sample.containers
        if part.container_id in members
    ]
    if sample.cgroup is not None:
        parts.append(_io(6, stamp, sample.cgroup))
    return attributes + message(2, *parts)


def _cpu(field: int, stamp: bytes, sample: CgroupSample, nano_cores: int | None) -> bytes:
    return message(field, stamp, boxed(2, sample.cpu_usage_ns), boxed(3, nano_cores), _psi(4, sample.cpu_psi))


def _memory(field: int, stamp: bytes, sample: CgroupSample) -> bytes:
    return message(
        field,
        stamp,
        boxed(2, sample.memory_working_set_bytes),
        boxed(3, _available(sample.memory_limit_bytes, sample.memory_working_set_bytes)),
        boxed(4, sample.memory_usage_bytes),
        boxed(5, sample.memory_rss_bytes),
        boxed(6, sample.memory_page_faults),
        boxed(7, sample.memory_major_page_faults),
        _psi(8, sample.memory_psi),
    )


def _available(limit: int | None, used: int | None) -> int | None:
    """What is left of a limit; without a limit nobody can say."""
    return None if limit is None or used is None else limit - used


def _swap(field: int, stamp: bytes, sample: CgroupSample) -> bytes:
    if sample.swap_usage_bytes is None:
        return b""
    available = _available(sample.swap_limit_bytes, sample.swap_usage_bytes)
    return message(field, stamp, boxed(2, available), boxed(3, sample.swap_usage_bytes))


def _io(field: int, stamp: bytes, sample: CgroupSample) -> bytes:
    return b"" if sample.io_psi is None else message(field, stamp, _psi(2, sample.io_psi))


def _psi(field: int, psi: Psi | None) -> bytes:
    return b"" if psi is None else message(field, _pressure(1, psi.full), _pressure(2, psi.some))


def _pressure(field: int, line: Pressure | None) -> bytes:
    if line is None:
        return b""
    total_ns = line.total_us * 1000
    return message(field, number(1, total_ns), real(2, line.avg10), real(3, line.avg60), real(4, line.avg300))


def _filesystem(field: int, usage: FilesystemUsage | None) -> bytes:
    if usage is None:
        return b""
    mountpoint = message(2, text(1, usage.mountpoint))
    return message(
        field, number(1, usage.timestamp), mountpoint, boxed(3, usage.used_bytes), boxed(4, usage.inodes_used)
    )


def _network(field: int, sample: PodSample) -> bytes:
    """The first interface is the pod's own, the one that the default route uses; the others are all there are, loopback
    among them (CRI, NetworkUsage): a kubelet shows no list at all where there is none."""
    if not sample.interfaces:
        return b""
    first, *others = sample.interfaces
    field_of_first = 3 if first.name == LOOPBACK else 2
    parts = [_interface(field_of_first, first), *(_interface(3, other) for other in others)]
    return message(field, number(1, sample.timestamp), *parts)


def _interface(field: int, sample: InterfaceSample) -> bytes:
    return message(
        field,
        text(1, sample.name),
        boxed(2, sample.rx_bytes),
        boxed(3, sample.rx_errors),
        boxed(4, sample.tx_bytes),
        boxed(5, sample.tx_errors),
    )
