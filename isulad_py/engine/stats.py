"""What containers and pods use: cgroup files read in process, and CPU rates between two samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from isulad_py.engine.queries import ContainerFilter, PodFilter, Queries
from isulad_py.model.container import ContainerRecord, ContainerState
from isulad_py.model.errors import EngineError, FailedPrecondition
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.model.stats import CgroupSample, ContainerSample, InterfaceSample, PodSample
from isulad_py.ports.clock import Clock
from isulad_py.ports.network import Network
from isulad_py.ports.stats import CgroupSampler
from isulad_py.ports.storage import RootFilesystems

SHORTEST_INTERVAL_NS: Final = 100_000_000
"""A rate over less than this says more about the clock than about the container."""

SHOWN: Final = frozenset({ContainerState.CREATED, ContainerState.RUNNING, ContainerState.PAUSED})


class _Mark(msgspec.Struct, frozen=True):
    timestamp: int
    cpu_usage_ns: int
    nano_cores: int | None


class Stats:
    def __init__(
        self, *, queries: Queries, sampler: CgroupSampler, rootfs: RootFilesystems, network: Network, clock: Clock
    ) -> None:
        self._queries = queries
        self._clock = clock
        self._sampler = sampler
        self._rootfs = rootfs
        self._network = network
        self._marks: dict[str, _Mark] = {}

    async def container(self, container_id: str) -> tuple[ContainerRecord, ContainerSample]:
        record = self._queries.container(container_id)
        found = await self._samples([record])
        if not found:
            raise FailedPrecondition(f"container {record.id} is {record.state.value}: nothing to measure")
        return found[0]

    async def containers(self, wanted: ContainerFilter | None = None) -> list[tuple[ContainerRecord, ContainerSample]]:
        """Of every container that has a process."""
        wanted = wanted or ContainerFilter()
        records = [record for record in self._queries.containers(wanted) if record.state in SHOWN]
        self._drop_marks()
        return await self._samples(records)

    async def _samples(self, records: Sequence[ContainerRecord]) -> list[tuple[ContainerRecord, ContainerSample]]:
        readings = await self._sampler.sample([record.cgroup_path for record in records])
        return [
            (record, await self._container_sample(record, reading))
            for record, reading in zip(records, readings, strict=True)
            if reading is not None
        ]

    async def _container_sample(self, record: ContainerRecord, reading: CgroupSample) -> ContainerSample:
        return ContainerSample(
            container_id=record.id,
            cgroup=reading,
            nano_cores=self._rate(record.id, reading),
            writable_layer=await self._rootfs.usage(record.id),
        )

    async def pod(self, pod_id: str) -> tuple[PodRecord, PodSample]:
        record = self._queries.pod(pod_id)
        if record.state is not PodState.READY:
            raise FailedPrecondition(f"pod {record.id} is not ready: nothing to measure")
        return (await self._pod_samples([record]))[0]

    async def pods(self, wanted: PodFilter | None = None) -> list[tuple[PodRecord, PodSample]]:
        """Of every ready pod."""
        records = [r for r in self._queries.pods(wanted or PodFilter()) if r.state is PodState.READY]
        self._drop_marks()
        return await self._pod_samples(records)

    async def _pod_samples(self, records: Sequence[PodRecord]) -> list[tuple[PodRecord, PodSample]]:
        """All cgroups in one batch: handing each pod's over by itself would cost more than reading them."""
        pods = {record.id for record in records}
        members = [c for c in self._queries.containers(ContainerFilter()) if c.pod_id in pods and c.state in SHOWN]
        paths = [record.cgroup_path for record in records] + [member.cgroup_path for member in members]
        readings = await self._sampler.sample(paths)
        parts: dict[str, list[ContainerSample]] = {record.id: [] for record in records}
        for member, reading in zip(members, readings[len(records) :], strict=True):
            if reading is not None:
                parts[member.pod_id].append(await self._container_sample(member, reading))
        return [
            (record, await self._pod_sample(record, reading, parts[record.id]))
            for record, reading in zip(records, readings, strict=False)
        ]

    async def _pod_sample(
        self, record: PodRecord, reading: CgroupSample | None, parts: Sequence[ContainerSample]
    ) -> PodSample:
        counts = [part.cgroup.processes for part in parts if part.cgroup.processes is not None]
        return PodSample(
            pod_id=record.id,
            timestamp=self._clock.now_ns(),
            cgroup=reading,
            nano_cores=self._rate(record.id, reading) if reading else None,
            interfaces=await self.interfaces(record),
            process_count=sum(counts) if counts else None,
            containers=tuple(parts),
        )

    async def interfaces(self, record: PodRecord) -> tuple[InterfaceSample, ...]:
        """None for the host's network, and none for a namespace that goes away just now."""
        if not record.environment.netns_path:
            return ()
        try:
            return await self._network.interfaces(record.environment.netns_path)
        except EngineError:
            return ()

    def _rate(self, key: str, sample: CgroupSample) -> int | None:
        """Nanoseconds of CPU a second since the sample before; the former rate when that was just now."""
        if sample.cpu_usage_ns is None:
            return None
        former = self._marks.get(key)
        if former is None:
            self._marks[key] = _Mark(sample.timestamp, sample.cpu_usage_ns, None)
            return None
        interval = sample.timestamp - former.timestamp
        if interval < SHORTEST_INTERVAL_NS:
            return former.nano_cores
        rate = max(0, sample.cpu_usage_ns - former.cpu_usage_ns) * 1_000_000_000 // interval
        self._marks[key] = _Mark(sample.timestamp, sample.cpu_usage_ns, rate)
        return rate

    def _drop_marks(self) -> None:
        """Forgets what is gone."""
        live: set[str] = {record.id for record in self._queries.containers(ContainerFilter())}
        live |= {record.id for record in self._queries.pods(PodFilter())}
        for key in self._marks.keys() - live:
            del self._marks[key]
