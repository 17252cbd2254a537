"""What clients are told when something goes wrong."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from isulad_py.model import errors
from tests.wire.conftest import Served

CODES = {
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.FailedPrecondition: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.Unsupported: grpc.StatusCode.UNIMPLEMENTED,
    errors.Aborted: grpc.StatusCode.ABORTED,
    errors.HostFailure: grpc.StatusCode.INTERNAL,
    errors.DataLoss: grpc.StatusCode.DATA_LOSS,
}


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
async def test_every_error_has_its_code_and_its_words(
    served: Served, client: Any, kind: type[errors.EngineError]
) -> None:
    served.engine.faults.fail["readiness.status"] = kind("step: no «luck»\n100%")
    error = await refused(client.runtime.Status(client.m.StatusRequest()))
    assert (error.code(), error.details()) == (CODES[kind], "step: no «luck»\n100%")
    assert served.seen.finished == [("runtime.v1.RuntimeService/Status", CODES[kind].name)]
    assert served.seen.in_flight == 0


def test_every_error_of_the_model_is_in_the_table() -> None:
    assert set(errors.EngineError.__subclasses__()) == set(CODES)


async def test_what_failed_while_undoing_is_told_too(served: Served, client: Any) -> None:
    error = errors.HostFailure("runtime create: exited with 1")
    error.cleanup.append(OSError("device is busy"))
    served.engine.faults.fail["pods.run"] = error
    request = client.m.RunPodSandboxRequest(config={"metadata": {"name": "p"}})
    told = await refused(client.runtime.RunPodSandbox(request))
    assert told.details() == "runtime create: exited with 1; and while undoing: device is busy"


async def test_an_unexpected_error_is_internal_with_a_request_id(served: Served, client: Any) -> None:
    served.engine.faults.fail["readiness.status"] = KeyError("secret")
    error = await refused(client.runtime.Status(client.m.StatusRequest()))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "under request " in (error.details() or "")
    assert "secret" not in (error.details() or "")


async def test_a_group_of_errors_counts_as_its_first(served: Served, client: Any) -> None:
    group = ExceptionGroup("both", [ExceptionGroup("one", [errors.NotFound("pod a does not exist")])])
    served.engine.faults.fail["readiness.status"] = group
    error = await refused(client.runtime.Status(client.m.StatusRequest()))
    assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "pod a does not exist")


async def test_a_group_with_a_foreign_error_is_unexpected(served: Served, client: Any) -> None:
    served.engine.faults.fail["readiness.status"] = ExceptionGroup("x", [errors.NotFound("a"), KeyError("b")])
    error = await refused(client.runtime.Status(client.m.StatusRequest()))
    assert error.code() is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("text", ["long " * 10_000, "ü" * 10_000, "𐍈" * 10_000, "bad \udcff byte"])
async def test_no_message_is_too_long_or_too_odd_to_send(served: Served, client: Any, text: str) -> None:
    served.engine.faults.fail["readiness.status"] = errors.HostFailure(text)
    error = await refused(client.runtime.Status(client.m.StatusRequest()))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert (error.details() or "")[:3] == text[:3]


@pytest.mark.parametrize(
    ("method", "request_type", "fields", "field"),
    [
        ("RunPodSandbox", "RunPodSandboxRequest", {}, "config is missing"),
        ("RunPodSandbox", "RunPodSandboxRequest", {"config": {}}, "config.metadata is missing"),
        ("StopPodSandbox", "StopPodSandboxRequest", {}, "pod_sandbox_id is empty"),
        ("RemovePodSandbox", "RemovePodSandboxRequest", {}, "pod_sandbox_id is empty"),
        ("PodSandboxStatus", "PodSandboxStatusRequest", {}, "pod_sandbox_id is empty"),
        ("CreateContainer", "CreateContainerRequest", {}, "pod_sandbox_id is empty"),
        ("CreateContainer", "CreateContainerRequest", {"pod_sandbox_id": "a"}, "config is missing"),
        ("StartContainer", "StartContainerRequest", {}, "container_id is empty"),
        ("StopContainer", "StopContainerRequest", {"container_id": "a", "timeout": -1}, "timeout: -1"),
        ("RemoveContainer", "RemoveContainerRequest", {}, "container_id is empty"),
        ("ContainerStatus", "ContainerStatusRequest", {}, "container_id is empty"),
        ("ListContainers", "ListContainersRequest", {"filter": {"state": {"state": 9}}}, "filter.state.state: 9"),
        ("UpdateContainerResources", "UpdateContainerResourcesRequest", {"container_id": "a"}, "linux is missing"),
        ("ExecSync", "ExecSyncRequest", {"container_id": "a"}, "cmd is empty"),
        ("ExecSync", "ExecSyncRequest", {"container_id": "a", "cmd": ["a"], "timeout": -1}, "timeout: -1"),
        (
            "UpdateRuntimeConfig",
            "UpdateRuntimeConfigRequest",
            {"runtime_config": {"network_config": {"pod_cidr": "10.0.0.0/8,10.1.0.0/16"}}},
            "runtime_config.network_config.pod_cidr",
        ),
    ],
)
async def test_wrong_requests_are_refused_by_field_before_any_effect(
    served: Served, client: Any, method: str, request_type: str, fields: dict[str, Any], field: str
) -> None:
    error = await refused(getattr(client.runtime, method)(getattr(client.m, request_type)(**fields)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (error.details() or "").startswith(field)
    assert not served.engine.faults.calls


@pytest.mark.parametrize(
    ("method", "field"), [("PodSandboxStatus", "pod_sandbox_id"), ("ContainerStatus", "container_id")]
)
async def test_the_status_of_the_unknown_is_not_found(client: Any, method: str, field: str) -> None:
    request = getattr(client.m, f"{method}Request")(**{field: "beef"})
    assert (await refused(getattr(client.runtime, method)(request))).code() is grpc.StatusCode.NOT_FOUND


async def test_an_image_must_be_named(client: Any) -> None:
    for method in ("PullImage", "ImageStatus", "RemoveImage"):
        error = await refused(getattr(client.image, method)(getattr(client.m, f"{method}Request")()))
        assert (error.code(), error.details()) == (grpc.StatusCode.INVALID_ARGUMENT, "image.image is empty")
