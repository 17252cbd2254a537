"""The daemon's metrics, in a registry of their own.

Whatever reads engine state is asked on the loop (`refresh`); `render` then only turns numbers into text and may run in
a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Final, NamedTuple

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_RPC_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_STEP_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_PULL_BUCKETS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_LAG_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)


class Population(Struct, frozen=True, kw_only=True):
    """How many there are, by state."""

    pods: Mapping[str, int] = {}
    containers: Mapping[str, int] = {}
    images: int = 0
    stream_sessions: int = 0


class Described(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


class _Gathered:
    """A collector of what `refresh` last found."""

    DESCRIBED: Final = (
        Described("isulad_pods", "gauge", ("state",), "Pods by state."),
        Described("isulad_containers", "gauge", ("state",), "Containers by state."),
        Described("isulad_images", "gauge", (), "Images in the store."),
        Described("isulad_stream_sessions", "gauge", (), "Open sessions of exec, attach and port-forward."),
        Described("isulad_tasks", "gauge", (), "asyncio tasks."),
        Described("isulad_threads", "gauge", (), "Python threads."),
    )

    def __init__(self) -> None:
        self.population = Population()
        self.tasks = 0

    def collect(self) -> Iterable[Metric]:
        pods, containers = self.population.pods, self.population.containers
        numbers = (
            self.population.images,
            self.population.stream_sessions,
            self.tasks,
            threading.active_count(),
        )
        single = [{"": number} for number in numbers]
        for described, counts in zip(self.DESCRIBED, (pods, containers, *single), strict=True):
            family = GaugeMetricFamily(described.name, described.meaning, labels=described.labels)
            for state, count in counts.items():
                family.add_metric([state] if described.labels else [], count)
            yield family


class Metrics:
    """Every instrument of the daemon; the methods are what other rooms call."""

    def __init__(self, *, version: str) -> None:
        self._registry = CollectorRegistry()
        self._described: list[Described] = list(_Gathered.DESCRIBED)
        self._gathered = _Gathered()
        self._registry.register(self._gathered)
        ProcessCollector(registry=self._registry)
        self._gauge("isulad_build_info", "Always 1.", "version").labels(version).set(1)
        self._in_flight = self._gauge("isulad_rpcs_in_flight", "Calls being served.", "method")
        self._rpcs = self._histogram("isulad_rpc_seconds", "Answered calls.", _RPC_BUCKETS, "method", "code")
        self._pulls = self._histogram("isulad_image_pull_seconds", "Image pulls.", _PULL_BUCKETS, "result")
        self._pulled = self._counter("isulad_image_pulled_bytes", "Compressed bytes fetched.")
        self._steps = self._histogram(
            "isulad_operation_seconds",
            "Calls to what is outside: CNI plugins, the runtime.",
            _STEP_BUCKETS,
            "room",
            "operation",
            "result",
        )
        self._lag = self._histogram("isulad_loop_lag_seconds", "Lateness of the loop's timers.", _LAG_BUCKETS)
        self._lag_max = self._gauge("isulad_loop_lag_max_seconds", "Worst lateness since the start.")
        self._failures = self._counter("isulad_task_failures", "Background tasks that died.", "task")
        self.worst_lag_seconds = 0.0

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        self._described.append(Described(name, "gauge", labels, meaning))
        return Gauge(name, meaning, labels, registry=self._registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        self._described.append(Described(f"{name}_total", "counter", labels, meaning))
        return Counter(name, meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        self._described.append(Described(name, "histogram", labels, meaning))
        return Histogram(name, meaning, labels, buckets=buckets, registry=self._registry)

    def described(self) -> list[Described]:
        """What there is, for the documents; `process_*` of the client library comes on top."""
        return list(self._described)

    def rpc_started(self, method: str) -> None:
        """`method` must be a name of the served services, never what a client wrote: each is a series."""
        self._in_flight.labels(method).inc()

    def rpc_finished(self, method: str, code: str, seconds: float) -> None:
        """Pairs with `rpc_started`."""
        self._in_flight.labels(method).dec()
        self._rpcs.labels(method, code).observe(seconds)

    def pull_finished(self, result: str, seconds: float, fetched_bytes: int = 0) -> None:
        self._pulls.labels(result).observe(seconds)
        self._pulled.inc(fetched_bytes)

    @contextmanager
    def operation(self, room: str, operation: str) -> Iterator[None]:
        """Times what is done inside; an exception counts as a failure."""
        started, result = monotonic(), "error"
        try:
            yield
            result = "ok"
        finally:
            self._steps.labels(room, operation, result).observe(monotonic() - started)

    def task_failed(self, name: str) -> None:
        """`name` up to its first `:` or `-`: what follows is an id, of which there is no end."""
        self._failures.labels(name.partition(":")[0].partition("-")[0]).inc()

    def loop_lag(self, seconds: float) -> None:
        self._lag.observe(seconds)
        if seconds > self.worst_lag_seconds:
            self.worst_lag_seconds = seconds
            self._lag_max.set(seconds)

    def refresh(self, population: Callable[[], Population]) -> None:
        """To be called on the loop, before `render`."""
        self._gathered.population = population()
        self._gathered.tasks = len(asyncio.all_tasks())

    def render(self) -> bytes:
        """The text exposition."""
        return generate_latest(self._registry)
