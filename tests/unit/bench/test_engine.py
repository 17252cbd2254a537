from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from bench.engine import LoopLag
from isulad_py.telemetry.metrics import Metrics


def test_reads_what_the_daemon_writes() -> None:
    metrics = Metrics(version="1")
    for seconds in (0.001, 0.049, 0.051, 0.2):
        metrics.loop_lag(seconds)
    assert LoopLag.parse(metrics.render().decode()) == LoopLag(looks=4, late=2)


def test_metrics_of_another_engine_tell_no_lag() -> None:
    assert LoopLag.parse(generate_latest(CollectorRegistry()).decode()) is None
