"""What is measured, through a real channel."""

from __future__ import annotations

from typing import Any

import msgspec

from isulad_py.model.container import ContainerMetadata
from tests.wire.conftest import Served


async def test_container_stats(served: Served, client: Any) -> None:
    container = served.engine.add_container(served.engine.add_pod())
    answer = await client.runtime.ContainerStats(client.m.ContainerStatsRequest(container_id=container.id))
    assert (answer.stats.attributes.id, answer.stats.cpu.usage_core_nano_seconds.value) == (container.id, 7)
    listed = await client.runtime.ListContainerStats(client.m.ListContainerStatsRequest())
    assert [each.memory.working_set_bytes.value for each in listed.stats] == [8]
    none = await client.runtime.ListContainerStats(client.m.ListContainerStatsRequest(filter={"id": "zz"}))
    assert not none.stats


async def test_pod_stats(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)
    answer = await client.runtime.PodSandboxStats(client.m.PodSandboxStatsRequest(pod_sandbox_id=pod.id))
    assert answer.stats.attributes.id == pod.id
    assert [part.attributes.id for part in answer.stats.linux.containers] == [container.id]
    listed = await client.runtime.ListPodSandboxStats(client.m.ListPodSandboxStatsRequest())
    assert [each.linux.cpu.usage_core_nano_seconds.value for each in listed.stats] == [9]
    none = await client.runtime.ListPodSandboxStats(client.m.ListPodSandboxStatsRequest(filter={"id": "zz"}))
    assert not none.stats


async def test_streamed_stats_are_the_lists(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)
    m = client.m
    answers = [answer async for answer in client.runtime.StreamContainerStats(m.StreamContainerStatsRequest())]
    assert [[part.attributes.id for part in answer.container_stats] for answer in answers] == [[container.id]]
    pods = [answer async for answer in client.runtime.StreamPodSandboxStats(m.StreamPodSandboxStatsRequest())]
    assert [[part.attributes.id for part in answer.pod_sandbox_stats] for answer in pods] == [[pod.id]]
    wanted = m.StreamPodSandboxStatsRequest(filter={"id": "zz"})
    assert [answer async for answer in client.runtime.StreamPodSandboxStats(wanted)] == []
    wanted = m.StreamContainerStatsRequest(filter={"id": "zz"})
    assert [answer async for answer in client.runtime.StreamContainerStats(wanted)] == []


async def test_attributes_follow_every_change(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)

    async def names() -> list[str]:
        answer = await client.runtime.ListContainerStats(client.m.ListContainerStatsRequest())
        return [part.attributes.metadata.name for part in answer.stats]

    assert await names() == ["main"]
    config = msgspec.structs.replace(container.config, metadata=ContainerMetadata(name="other"))
    served.engine.change(container, config=config)
    assert await names() == ["other"]


async def test_metrics(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod)
    m = client.m
    described = (await client.runtime.ListMetricDescriptors(m.ListMetricDescriptorsRequest())).descriptors
    keys = {each.name: len(each.label_keys) for each in described}
    [found] = (await client.runtime.ListPodSandboxMetrics(m.ListPodSandboxMetricsRequest())).pod_metrics
    assert (found.pod_sandbox_id, [each.container_id for each in found.container_metrics]) == (pod.id, [container.id])
    told = [*found.metrics, *found.container_metrics[0].metrics]
    assert {metric.name: len(metric.label_values) for metric in told} == keys
    answers = [each async for each in client.runtime.StreamPodSandboxMetrics(m.StreamPodSandboxMetricsRequest())]
    assert [list(answer.pod_sandbox_metrics) for answer in answers] == [[found]]
