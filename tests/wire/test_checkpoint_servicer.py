"""Checkpoints through a real channel: refused, with the reason."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from tests.wire.conftest import Served


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_every_checkpoint_call_says_why_not(served: Served, client: Any) -> None:
    m, runtime = client.m, client.runtime
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod, started_at=1)
    refused = grpc.StatusCode.FAILED_PRECONDITION
    request = m.CheckpointContainerRequest(container_id=container.id, location="/tmp/x.tar", timeout=5)
    assert await refusal(runtime.CheckpointContainer(request)) == (refused, "no CRIU here")
    pods = m.CheckpointPodRequest(pod_sandbox_id=pod.id, output_path="/tmp/x", container_ids=[container.id])
    assert await refusal(runtime.CheckpointPod(pods)) == (refused, "no CRIU here")
    restore = m.RestorePodRequest(checkpoint_path="/tmp/x", options={"a": "b"})
    assert await refusal(runtime.RestorePod(restore)) == (refused, "no CRIU here")


@pytest.mark.parametrize(
    ("call", "fields", "field"),
    [
        ("CheckpointContainer", {"location": "/x"}, "container_id"),
        ("CheckpointContainer", {"container_id": "c", "location": "x"}, "location"),
        ("CheckpointContainer", {"container_id": "c", "location": "/x", "timeout": -1}, "timeout"),
        ("CheckpointPod", {"output_path": "/x"}, "pod_sandbox_id"),
        ("CheckpointPod", {"pod_sandbox_id": "p"}, "output_path"),
        ("CheckpointPod", {"pod_sandbox_id": "p", "output_path": "/x", "container_ids": [""]}, "container_ids[0]"),
        ("RestorePod", {}, "checkpoint_path"),
        ("RestorePod", {"checkpoint_path": "/x", "config": {}}, "config.metadata"),
        ("RestorePod", {"checkpoint_path": "/x", "container_configs": [{}]}, "container_configs[0].metadata"),
        ("RestorePod", {"checkpoint_path": "/x", "runtime_handler": "\n"}, "runtime_handler"),
    ],
)
async def test_wrong_requests(client: Any, call: str, fields: dict[str, Any], field: str) -> None:
    request = getattr(client.m, f"{call}Request")(**fields)
    code, words = await refusal(getattr(client.runtime, call)(request))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert words.startswith(field)
