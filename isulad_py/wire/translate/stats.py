"""What containers and pods use. What is not known stays absent, which is not zero."""

from __future__ import annotations

from collections.abc import Mapping

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import ContainerRecord
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodRecord
from isulad_py.model.stats import CgroupSample, ContainerSample, InterfaceSample, PodSample, Pressure, Psi
from isulad_py.wire.translate import containers, images, pods, presence


def container_stats(record: ContainerRecord, sample: ContainerSample) -> cri.ContainerStats:
    message = cri.ContainerStats(
        attributes=containers.container_attributes(record),
        cpu=_cpu(sample.cgroup, sample.nano_cores),
        memory=_memory(sample.cgroup),
    )
    if sample.writable_layer is not None:
        message.writable_layer = images.filesystem_usage(sample.writable_layer)
    if sample.cgroup.swap_usage_bytes is not None:
        message.swap = _swap(sample.cgroup)
    if sample.cgroup.io_psi is not None:
        message.io = cri.IoUsage(timestamp=sample.cgroup.timestamp, psi=_psi(sample.cgroup.io_psi))
    return message


def pod_stats(
    record: PodRecord, sample: PodSample, members: Mapping[ContainerId, ContainerRecord]
) -> cri.PodSandboxStats:
    """`members` are the pod's containers by id; a sample of one that has gone meanwhile is left out."""
    linux = cri.LinuxPodSandboxStats(
        containers=[
            container_stats(members[ContainerId(part.container_id)], part)
            for part in sample.containers
            if part.container_id in members
        ]
    )
    if sample.cgroup is not None:
        linux.cpu = _cpu(sample.cgroup, sample.nano_cores)
        linux.memory = _memory(sample.cgroup)
        linux.process = cri.ProcessUsage(timestamp=sample.cgroup.timestamp, process_count=_number(sample.process_count))
        if sample.cgroup.io_psi is not None:
            linux.io = cri.IoUsage(timestamp=sample.cgroup.timestamp, psi=_psi(sample.cgroup.io_psi))
        if sample.interfaces:
            linux.network = _network(sample.interfaces, sample.cgroup.timestamp)
    return cri.PodSandboxStats(attributes=pods.pod_attributes(record), linux=linux)


def _number(value: int | None) -> cri.UInt64Value:
    return presence.or_absent(None if value is None else cri.UInt64Value(value=max(0, value)))


def _cpu(sample: CgroupSample, nano_cores: int | None) -> cri.CpuUsage:
    return cri.CpuUsage(
        timestamp=sample.timestamp,
        usage_core_nano_seconds=_number(sample.cpu_usage_ns),
        usage_nano_cores=_number(nano_cores),
        psi=_psi(sample.cpu_psi),
    )


def _memory(sample: CgroupSample) -> cri.MemoryUsage:
    return cri.MemoryUsage(
        timestamp=sample.timestamp,
        working_set_bytes=_number(sample.memory_working_set_bytes),
        available_bytes=_number(_available(sample.memory_limit_bytes, sample.memory_working_set_bytes)),
        usage_bytes=_number(sample.memory_usage_bytes),
        rss_bytes=_number(sample.memory_rss_bytes),
        page_faults=_number(sample.memory_page_faults),
        major_page_faults=_number(sample.memory_major_page_faults),
        psi=_psi(sample.memory_psi),
    )


def _available(limit: int | None, used: int | None) -> int | None:
    """What is left of a limit; without a limit nobody can say."""
    return None if limit is None or used is None else limit - used


def _swap(sample: CgroupSample) -> cri.SwapUsage:
    return cri.SwapUsage(
        timestamp=sample.timestamp,
        swap_available_bytes=_number(_available(sample.swap_limit_bytes, sample.swap_usage_bytes)),
        swap_usage_bytes=_number(sample.swap_usage_bytes),
    )


def _psi(psi: Psi | None) -> cri.PsiStats:
    return presence.or_absent(None if psi is None else cri.PsiStats(full=_pressure(psi.full), some=_pressure(psi.some)))


def _pressure(line: Pressure | None) -> cri.PsiData:
    if line is None:
        return presence.or_absent(None)
    return cri.PsiData(total=line.total_us, avg10=line.avg10, avg60=line.avg60, avg300=line.avg300)


def _network(interfaces: tuple[InterfaceSample, ...], timestamp: int) -> cri.NetworkUsage:
    """The first interface is the pod's own, the one that the default route uses."""
    messages = [_interface(interface) for interface in interfaces]
    return cri.NetworkUsage(timestamp=timestamp, default_interface=messages[0], interfaces=messages[1:])


def _interface(sample: InterfaceSample) -> cri.NetworkInterfaceUsage:
    return cri.NetworkInterfaceUsage(
        name=sample.name,
        rx_bytes=_number(sample.rx_bytes),
        rx_errors=_number(sample.rx_errors),
        tx_bytes=_number(sample.tx_bytes),
        tx_errors=_number(sample.tx_errors),
    )
