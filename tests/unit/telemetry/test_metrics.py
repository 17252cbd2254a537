from __future__ import annotations

import pytest

from isulad_py.telemetry.metrics import Metrics, Population


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3")


def series(metrics: Metrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_calls_by_method_and_code(metrics: Metrics) -> None:
    metrics.rpc_started("RunPodSandbox")
    metrics.rpc_started("RunPodSandbox")
    metrics.rpc_finished("RunPodSandbox", "OK", 0.02)
    found = series(metrics)
    assert found['isulad_rpcs_in_flight{method="RunPodSandbox"}'] == 1
    assert found['isulad_rpc_seconds_count{code="OK",method="RunPodSandbox"}'] == 1
    assert found['isulad_rpc_seconds_bucket{code="OK",le="0.01",method="RunPodSandbox"}'] == 0
    assert found['isulad_rpc_seconds_bucket{code="OK",le="0.025",method="RunPodSandbox"}'] == 1


def test_operations_count_as_errors_when_they_raise(metrics: Metrics) -> None:
    with metrics.operation("network", "ADD"):
        pass
    with pytest.raises(OSError), metrics.operation("network", "ADD"):
        raise OSError
    found = series(metrics)
    for result in ("ok", "error"):
        assert found[f'isulad_operation_seconds_count{{operation="ADD",result="{result}",room="network"}}'] == 1


async def test_population_is_read_when_refreshed(metrics: Metrics) -> None:
    metrics.refresh(
        lambda: Population(pods={"ready": 2}, containers={"running": 3, "exited": 1}, images=4, stream_sessions=5)
    )
    found = series(metrics)
    assert found['isulad_pods{state="ready"}'] == 2
    assert found['isulad_containers{state="exited"}'] == 1
    assert found["isulad_images"] == 4
    assert found["isulad_stream_sessions"] == 5
    assert found["isulad_tasks"] >= 1


def test_lag_pulls_failures_and_the_process(metrics: Metrics) -> None:
    metrics.loop_lag(0.03)
    metrics.loop_lag(0.01)
    metrics.pull_finished("ok", 1.5, fetched_bytes=1000)
    metrics.task_failed("exit-1234")
    metrics.task_failed("exit-5678")
    found = series(metrics)
    assert found["isulad_loop_lag_max_seconds"] == metrics.worst_lag_seconds == 0.03
    assert found['isulad_loop_lag_seconds_bucket{le="0.02"}'] == 1
    assert found["isulad_image_pulled_bytes_total"] == 1000
    assert found['isulad_task_failures_total{task="exit"}'] == 2
    assert found['isulad_build_info{version="1.2.3"}'] == 1
    assert found["process_resident_memory_bytes"] > 0
    assert found["process_open_fds"] > 0


async def test_everything_that_is_rendered_is_described(metrics: Metrics) -> None:
    names = {line.split()[2] for line in metrics.render().decode().splitlines() if line.startswith("# TYPE")}
    ours = {name for name in names if name.startswith("isulad_") and not name.endswith("_created")}
    assert {described.name for described in metrics.described()} == ours
    assert all(described.meaning for described in metrics.described())
