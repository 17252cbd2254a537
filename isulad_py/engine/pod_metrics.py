"""Metrics of all pods and containers (CRI ListPodSandboxMetrics)."""

from __future__ import annotations

import msgspec

from isulad_py.engine.metric_table import DESCRIPTORS, Reading, container_values, pod_values
from isulad_py.engine.queries import ContainerFilter, PodFilter, Queries
from isulad_py.engine.stats import SHOWN, Stats
from isulad_py.model.container import ContainerRecord
from isulad_py.model.metrics import MetricDescriptor, MetricValue
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.model.stats import InterfaceSample
from isulad_py.ports.clock import Clock
from isulad_py.ports.stats import CgroupSampler
from isulad_py.ports.storage import RootFilesystems


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A pod or container with its readings; the values are made from them when they are asked for."""

    id: str
    timestamp: int
    labels: tuple[str, ...]
    """Values of metric_table.SUBJECT_KEYS."""


class ContainerReading(Subject, frozen=True, kw_only=True):
    reading: Reading

    def values(self) -> list[MetricValue]:
        return container_values(self.reading)


class PodReading(Subject, frozen=True, kw_only=True):
    interfaces: tuple[InterfaceSample, ...]
    containers: tuple[ContainerReading, ...]

    def values(self) -> list[MetricValue]:
        return pod_values(self.interfaces)


class PodMetrics:
    def __init__(
        self, *, queries: Queries, sampler: CgroupSampler, rootfs: RootFilesystems, stats: Stats, clock: Clock
    ) -> None:
        self._queries = queries
        self._sampler = sampler
        self._rootfs = rootfs
        self._stats = stats
        self._clock = clock

    @staticmethod
    def descriptors() -> tuple[MetricDescriptor, ...]:
        return DESCRIPTORS

    async def read(self) -> list[PodReading]:
        """Of every ready pod, whatever its other containers do, with its containers that have a process."""
        pods = self._queries.pods(PodFilter(state=PodState.READY))
        found: dict[str, list[ContainerReading]] = {pod.id: [] for pod in pods}
        by_id = {pod.id: pod for pod in pods}
        records = [c for c in self._queries.containers(ContainerFilter()) if c.state in SHOWN and c.pod_id in by_id]
        readings = await self._sampler.details([record.cgroup_path for record in records])
        filesystem = await self._rootfs.capacity()
        now = self._clock.now_ns()
        for record, seen in zip(records, readings, strict=True):
            if seen is None:
                continue
            sample, details = seen
            reading = Reading(
                now=now,
                started_at=record.started_at,
                resources=record.resources,
                sample=sample,
                details=details,
                writable_layer=await self._rootfs.usage(record.id),
                filesystem=filesystem,
            )
            labels = _container_labels(by_id[record.pod_id], record)
            found[record.pod_id].append(
                ContainerReading(id=record.id, timestamp=sample.timestamp, labels=labels, reading=reading)
            )
        return [await self._pod(pod, found[pod.id], now) for pod in pods]

    async def _pod(self, pod: PodRecord, containers: list[ContainerReading], now: int) -> PodReading:
        return PodReading(
            id=pod.id,
            timestamp=now,
            labels=_pod_labels(pod),
            interfaces=await self._stats.interfaces(pod),
            containers=tuple(containers),
        )


def _container_labels(pod: PodRecord, record: ContainerRecord) -> tuple[str, ...]:
    metadata = pod.config.metadata
    name = record.config.metadata.name
    return (name, record.cgroup_path, record.image_name, record.id, metadata.namespace, metadata.name)


def _pod_labels(pod: PodRecord) -> tuple[str, ...]:
    """A pod is no container and has no image."""
    return ("", pod.cgroup_path, "", pod.id, pod.config.metadata.namespace, pod.config.metadata.name)
