"""Checkpoints through a real channel."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from isulad_py.model.errors import FailedPrecondition
from tests.wire.conftest import Served


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_every_checkpoint_call_says_why_not(served: Served, client: Any) -> None:
    m, runtime = client.m, client.runtime
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod, started_at=1)
    for step in ("checkpoints.container", "pod_checkpoints.checkpoint", "pod_checkpoints.restore"):
        served.engine.faults.fail[step] = FailedPrecondition("no CRIU here")
    refused = grpc.StatusCode.FAILED_PRECONDITION
    request = m.CheckpointContainerRequest(container_id=container.id, location="/tmp/x.tar", timeout=5)
    assert await refusal(runtime.CheckpointContainer(request)) == (refused, "no CRIU here")
    pods = m.CheckpointPodRequest(pod_sandbox_id=pod.id, output_path="/tmp/x", container_ids=[container.id])
    assert await refusal(runtime.CheckpointPod(pods)) == (refused, "no CRIU here")
    restore = m.RestorePodRequest(checkpoint_path="/tmp/x", options={"a": "b"})
    assert await refusal(runtime.RestorePod(restore)) == (refused, "no CRIU here")


async def test_checkpoints_of_containers_and_pods(served: Served, client: Any) -> None:
    m, runtime = client.m, client.runtime
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod, started_at=1)
    request = m.CheckpointContainerRequest(container_id=container.id, location="/tmp/x.tar", timeout=5)
    assert await runtime.CheckpointContainer(request) == m.CheckpointContainerResponse()
    pods = m.CheckpointPodRequest(
        pod_sandbox_id=pod.id, output_path="/tmp/x", container_ids=[container.id], options={"a": "b"}
    )
    assert await runtime.CheckpointPod(pods) == m.CheckpointPodResponse()
    assert served.engine.checkpoints == [
        (container.id, "/tmp/x.tar", 5),
        (pod.id, "/tmp/x", (container.id,), {"a": "b"}),
    ]


async def test_a_pod_is_restored(served: Served, client: Any) -> None:
    m = client.m
    image = m.ImageSpec(image="busybox")
    request = m.RestorePodRequest(
        checkpoint_path="/tmp/x",
        runtime_handler="crun",
        options={"a": "b"},
        config=m.PodSandboxConfig(metadata=m.PodSandboxMetadata(name="web", uid="1", namespace="d")),
        container_configs=[
            m.ContainerConfig(metadata=m.ContainerMetadata(name=name), image=image) for name in ("one", "two")
        ],
    )
    answer = await client.runtime.RestorePod(request)
    assert served.engine.registry.pods[answer.pod_sandbox_id].config.metadata.name == "web"
    assert served.engine.checkpoints == [("/tmp/x", "crun", {"a": "b"})]
    assert [each.name for each in answer.restored_containers] == ["one", "two"]
    for each in answer.restored_containers:
        assert served.engine.registry.containers[each.container_id].pod_id == answer.pod_sandbox_id


@pytest.mark.parametrize(
    ("call", "fields", "field"),
    [
        ("CheckpointContainer", {"location": "/x"}, "container_id"),
        ("CheckpointContainer", {"container_id": "c", "location": "x"}, "location"),
        ("CheckpointContainer", {"container_id": "c", "location": "/x/../y"}, "location"),
        ("CheckpointContainer", {"container_id": "c", "location": "/x", "timeout": -1}, "timeout"),
        ("CheckpointPod", {"output_path": "/x"}, "pod_sandbox_id"),
        ("CheckpointPod", {"pod_sandbox_id": "p"}, "output_path"),
        ("CheckpointPod", {"pod_sandbox_id": "p", "output_path": "/../x"}, "output_path"),
        ("CheckpointPod", {"pod_sandbox_id": "p", "output_path": "/x", "container_ids": [""]}, "container_ids[0]"),
        ("CheckpointPod", {"pod_sandbox_id": "p", "output_path": "/x", "container_ids": ["c"] * 4097}, "container_ids"),
        ("RestorePod", {}, "checkpoint_path"),
        ("RestorePod", {"checkpoint_path": "/x/.."}, "checkpoint_path"),
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
