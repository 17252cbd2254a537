from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.metric_table import DESCRIPTORS
from isulad_py.engine.pod_metrics import ContainerReading, PodReading
from isulad_py.model.stats import InterfaceSample
from isulad_py.wire.translate import metrics
from tests.readings import FULL

CONTAINER = ContainerReading(
    id="c1", timestamp=77, labels=("main", "/g/c1", "busybox:1", "c1", "ns", "web"), reading=FULL
)
POD = PodReading(
    id="p1",
    timestamp=99,
    labels=("", "/g", "", "p1", "ns", "web"),
    interfaces=(InterfaceSample(name="eth0", rx_bytes=5),),
    containers=(CONTAINER,),
)


def test_metrics_of_a_pod(codec: str) -> None:
    found = cri.PodSandboxMetrics().parse(metrics.pod_metrics(POD))
    assert (found.pod_sandbox_id, len(found.metrics)) == ("p1", 8)
    first = found.metrics[0]
    assert (first.name, first.timestamp, first.value.value) == ("container_network_receive_bytes_total", 99, 5)
    assert first.metric_type == cri.MetricType.COUNTER
    assert first.label_values == ["", "/g", "", "p1", "ns", "web", "eth0"]
    [container] = found.container_metrics
    assert container.container_id == "c1"
    by_name = {metric.name: metric for metric in container.metrics}
    assert by_name["container_memory_rss"].value.value == FULL.sample.memory_rss_bytes
    assert by_name["container_memory_rss"].metric_type == cri.MetricType.GAUGE
    assert {metric.timestamp for metric in container.metrics} == {77}


def test_every_metric_has_a_value_for_each_of_its_labels() -> None:
    keys = {each.name: len(each.label_keys) for each in DESCRIPTORS}
    found = cri.PodSandboxMetrics().parse(metrics.pod_metrics(POD))
    told = [*found.metrics, *found.container_metrics[0].metrics]
    assert {metric.name for metric in told} == keys.keys()
    assert all(len(metric.label_values) == keys[metric.name] for metric in told)


def test_a_descriptor() -> None:
    message = metrics.descriptor_message(DESCRIPTORS[0])
    assert (message.name, message.help) == (DESCRIPTORS[0].name, DESCRIPTORS[0].help)
    assert tuple(message.label_keys) == DESCRIPTORS[0].label_keys
