"""The part of RuntimeService that measures: decode, one service call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import nullcontext

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.container import ContainerRecord
from isulad_py.model.pod import PodRecord
from isulad_py.model.stats import ContainerSample, PodSample
from isulad_py.wire.cri.services import Lists, Services
from isulad_py.wire.encodings import Chunks, gather_fresh, join_fresh, split
from isulad_py.wire.protobuf import message
from isulad_py.wire.translate import calls, filters, metrics, stats


class StatsServicer:
    def __init__(self, *, services: Services, lists: Lists) -> None:
        self._to = services
        self._lists = lists

    async def container_stats(self, request: cri.ContainerStatsRequest) -> bytes:
        found = await self._to.stats.container(calls.container_id(request.container_id))
        return await join_fresh(await self._containers([found], complete=False))

    async def list_container_stats(self, request: cri.ListContainerStatsRequest) -> bytes:
        return await join_fresh(await self._listed_containers(request.filter))

    def stream_container_stats(self, request: cri.StreamContainerStatsRequest) -> Chunks:
        return nullcontext(self._chunks_of_containers(request.filter))

    async def _chunks_of_containers(self, wanted: cri.ContainerStatsFilter) -> AsyncIterator[bytes]:
        for chunk in split(await gather_fresh(await self._listed_containers(wanted))):
            yield chunk

    async def _listed_containers(self, message: cri.ContainerStatsFilter) -> Iterable[bytes]:
        wanted = filters.container_stats_filter(message)
        found = await self._to.stats.containers(wanted)
        return await self._containers(found, complete=wanted == ContainerFilter())

    async def _containers(
        self, found: list[tuple[ContainerRecord, ContainerSample]], *, complete: bool
    ) -> Iterator[bytes]:
        """Elements of the answer; each is made when it is asked for."""
        records = [record for record, _ in found]
        attributes = await self._lists.container_attributes.elements(records, complete=complete)
        return (
            message(1, stats.container_stats(own, sample)) for own, (_, sample) in zip(attributes, found, strict=True)
        )

    async def pod_sandbox_stats(self, request: cri.PodSandboxStatsRequest) -> bytes:
        found = await self._to.stats.pod(calls.pod_id(request.pod_sandbox_id))
        return await join_fresh(await self._pods([found], complete=False))

    async def list_pod_sandbox_stats(self, request: cri.ListPodSandboxStatsRequest) -> bytes:
        return await join_fresh(await self._listed_pods(request.filter))

    def stream_pod_sandbox_stats(self, request: cri.StreamPodSandboxStatsRequest) -> Chunks:
        return nullcontext(self._chunks_of_pods(request.filter))

    async def _chunks_of_pods(self, wanted: cri.PodSandboxStatsFilter) -> AsyncIterator[bytes]:
        for chunk in split(await gather_fresh(await self._listed_pods(wanted))):
            yield chunk

    async def _listed_pods(self, message: cri.PodSandboxStatsFilter) -> Iterable[bytes]:
        wanted = filters.pod_stats_filter(message)
        return await self._pods(await self._to.stats.pods(wanted), complete=wanted == PodFilter())

    async def _pods(self, found: list[tuple[PodRecord, PodSample]], *, complete: bool) -> Iterator[bytes]:
        parts = {part.container_id for _, sample in found for part in sample.containers}
        records = [record for record in self._to.queries.containers(ContainerFilter()) if record.id in parts]
        own = await self._lists.container_attributes.elements(records, complete=complete)
        members: dict[str, bytes] = {record.id: element for record, element in zip(records, own, strict=True)}
        pods = [record for record, _ in found]
        attributes = await self._lists.pod_attributes.elements(pods, complete=complete)
        return (
            message(1, stats.pod_stats(pod, sample, members))
            for pod, (_, sample) in zip(attributes, found, strict=True)
        )

    async def list_metric_descriptors(
        self, _request: cri.ListMetricDescriptorsRequest
    ) -> cri.ListMetricDescriptorsResponse:
        found = self._to.metrics.descriptors()
        return cri.ListMetricDescriptorsResponse(descriptors=[metrics.descriptor_message(each) for each in found])

    async def list_pod_sandbox_metrics(self, _request: cri.ListPodSandboxMetricsRequest) -> bytes:
        return b"".join(await self._metrics())

    def stream_pod_sandbox_metrics(self, _request: cri.StreamPodSandboxMetricsRequest) -> Chunks:
        return nullcontext(self._chunks_of_metrics())

    async def _chunks_of_metrics(self) -> AsyncIterator[bytes]:
        for chunk in split(await self._metrics()):
            yield chunk

    async def _metrics(self) -> list[bytes]:
        found = await self._to.metrics.read()
        return await gather_fresh((message(1, metrics.pod_metrics(pod)) for pod in found), slice_=1)
