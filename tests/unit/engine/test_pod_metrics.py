from __future__ import annotations

from isulad_py.engine.metric_table import SUBJECT_KEYS
from isulad_py.engine.pod_metrics import ContainerReading, PodMetrics, PodReading
from tests.unit.engine.node import Node, World


def value_of(reading: ContainerReading | PodReading, name: str) -> int:
    return next(value.value for value in reading.values() if value.descriptor.name == name)


def labels(reading: ContainerReading | PodReading) -> dict[str, str]:
    return dict(zip(SUBJECT_KEYS, reading.labels, strict=True))


async def test_metrics_of_a_pod_and_its_containers(node: Node, world: World) -> None:
    pod_id = await node.run_pod("web")
    container_id = await node.run_container(pod_id, name="server")
    record = node.services.queries.container(container_id)
    world.sampler.put(record.cgroup_path, timestamp=77, memory_rss_bytes=5)
    world.sampler.put_details(record.cgroup_path, oom_kills=3)
    [pod] = await node.services.metrics.read()
    assert (pod.id, value_of(pod, "container_network_receive_bytes_total") >= 0) == (pod_id, True)
    assert labels(pod) == {
        "container": "",
        "id": node.services.queries.pod(pod_id).cgroup_path,
        "image": "",
        "name": pod_id,
        "namespace": "default",
        "pod": "web",
    }
    [container] = pod.containers
    assert (container.id, container.timestamp) == (container_id, 77)
    assert labels(container) == {
        "container": "server",
        "id": record.cgroup_path,
        "image": record.image_name,
        "name": container_id,
        "namespace": "default",
        "pod": "web",
    }
    assert value_of(container, "container_memory_rss") == 5
    assert value_of(container, "container_oom_events_total") == 3
    assert value_of(container, "container_fs_limit_bytes") == 1 << 30


async def test_a_container_that_has_ended_keeps_no_other_from_being_told(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    ended = await node.run_container(pod_id, "true", name="init")
    await node.until_exited(ended)
    running = await node.run_container(pod_id, name="main")
    gone = await node.run_container(pod_id, name="gone")
    for container_id in (ended, running):
        world.sampler.put(node.services.queries.container(container_id).cgroup_path, timestamp=1)
    world.sampler.drop(node.services.queries.container(gone).cgroup_path)
    [pod] = await node.services.metrics.read()
    assert [container.id for container in pod.containers] == [running]


async def test_only_ready_pods_have_metrics(node: Node) -> None:
    pod_id = await node.run_pod()
    await node.services.pods.stop(pod_id)
    assert await node.services.metrics.read() == []


def test_descriptors_have_no_twins() -> None:
    names = [each.name for each in PodMetrics.descriptors()]
    assert len(names) == len(set(names))
