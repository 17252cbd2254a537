from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from bench.engine import LoopLag
from isulad_py.telemetry.metrics import Metrics


def test_reads_what_the_daemon_writes() -> None:
    metrics = Metrics(version="1")
    for seconds in (0.001, 0.019, 0.021, 0.051, 0.2):
        metrics.loop_lag(seconds)
    found = LoopLag.parse(metrics.render().decode())
    assert found is not None
    assert (found.looks, found.late(0.02), found.late(0.05), found.late(0.0001)) == (5, 3, 2, 5)


def test_metrics_of_another_engine_tell_no_lag() -> None:
    assert LoopLag.parse(generate_latest(CollectorRegistry()).decode()) is None
