"""Metrics, as bytes: a node has thousands of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.pod_metrics import ContainerReading, PodReading
from isulad_py.model.metrics import MetricDescriptor, MetricValue
from isulad_py.wire.protobuf import boxed, message, number, text, texts


def descriptor_message(descriptor: MetricDescriptor) -> cri.MetricDescriptor:
    return cri.MetricDescriptor(name=descriptor.name, help=descriptor.help, label_keys=list(descriptor.label_keys))


def pod_metrics(reading: PodReading) -> bytes:
    """A PodSandboxMetrics."""
    containers = [message(3, _container(container)) for container in reading.containers]
    return b"".join([text(1, reading.id), *_metrics(reading, reading.values()), *containers])


def _container(reading: ContainerReading) -> bytes:
    return b"".join([text(1, reading.id), *_metrics(reading, reading.values())])


def _metrics(of: PodReading | ContainerReading, values: Iterable[MetricValue]) -> list[bytes]:
    """Field 2 of both messages."""
    stamp, subject = number(2, of.timestamp), texts(4, of.labels)
    found = []
    for descriptor, labels, value in values:
        name, kind = _head(descriptor)
        found.append(message(2, name, stamp, kind, subject, texts(4, labels), boxed(5, value)))
    return found


@cache  # there is one descriptor for each metric, for ever
def _head(descriptor: MetricDescriptor) -> tuple[bytes, bytes]:
    return text(1, descriptor.name), number(3, descriptor.kind)
