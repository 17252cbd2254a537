from __future__ import annotations

from typing import Any

import grpc
import pytest

from isulad_py.engine.sessions import AttachRequest, ExecRequest, PortForwardRequest
from isulad_py.ports.streams import StreamWishes
from tests.wire.conftest import Served


@pytest.fixture(params=["runtime.v1", "runtime.v1alpha2"])
def client(served: Served, request: pytest.FixtureRequest) -> Any:
    return served.connect(request.param)


def taken(served: Served, url: str, kind: str) -> object:
    base, _, token = url.rpartition("/")
    assert base == f"http://127.0.0.1:1/cri/{kind}"
    return served.engine.tokens.take(token)


async def test_addresses_of_streams(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    container = served.engine.add_container(pod, started_at=1)
    answer = await client.runtime.Exec(
        client.m.ExecRequest(container_id=container.id[:13], cmd=["sh", "-i"], tty=True, stdin=True, stdout=True)
    )
    assert taken(served, answer.url, "exec") == ExecRequest(
        container_id=container.id,
        cmd=("sh", "-i"),
        wishes=StreamWishes(stdin=True, stdout=True, terminal=True),
    )
    quiet = client.m.ExecRequest(container_id=container.id, cmd=["a"], stderr=True)
    answer = await client.runtime.Exec(quiet)
    assert taken(served, answer.url, "exec").wishes == StreamWishes(stderr=True)
    wanted = client.m.AttachRequest(container_id=container.id, stdin=True, stdout=True, stderr=True)
    answer = await client.runtime.Attach(wanted)
    assert taken(served, answer.url, "attach") == AttachRequest(
        container_id=container.id, wishes=StreamWishes(stdin=True, stdout=True, stderr=True)
    )
    answer = await client.runtime.PortForward(client.m.PortForwardRequest(pod_sandbox_id=pod.id, port=[80, 443]))
    assert taken(served, answer.url, "portforward") == PortForwardRequest(pod_id=pod.id, ports=(80, 443))


@pytest.mark.parametrize(
    ("method", "fields", "code", "words"),
    [
        ("Exec", {"cmd": ["a"], "stdout": True}, grpc.StatusCode.INVALID_ARGUMENT, "container_id"),
        ("Exec", {"container_id": "c", "stdout": True}, grpc.StatusCode.INVALID_ARGUMENT, "cmd"),
        ("Exec", {"container_id": "c", "cmd": ["a"]}, grpc.StatusCode.INVALID_ARGUMENT, "at least one"),
        (
            "Exec",
            {"container_id": "c", "cmd": ["a"], "stderr": True, "tty": True},
            grpc.StatusCode.INVALID_ARGUMENT,
            "tty and stderr",
        ),
        ("Exec", {"container_id": "c", "cmd": ["a"], "stdout": True}, grpc.StatusCode.NOT_FOUND, "c"),
        ("Attach", {"stdout": True}, grpc.StatusCode.INVALID_ARGUMENT, "container_id"),
        ("Attach", {"container_id": "c"}, grpc.StatusCode.INVALID_ARGUMENT, "at least one"),
        ("Attach", {"container_id": "c", "stdout": True}, grpc.StatusCode.NOT_FOUND, "c"),
        ("PortForward", {}, grpc.StatusCode.INVALID_ARGUMENT, "pod_sandbox_id"),
        ("PortForward", {"pod_sandbox_id": "p", "port": [0]}, grpc.StatusCode.INVALID_ARGUMENT, "port"),
        ("PortForward", {"pod_sandbox_id": "p"}, grpc.StatusCode.NOT_FOUND, "p"),
    ],
)
async def test_wrong_requests(
    served: Served, method: str, fields: dict[str, Any], code: grpc.StatusCode, words: str
) -> None:
    client = served.connect()
    request = getattr(client.m, f"{method}Request")(**fields)
    with pytest.raises(grpc.RpcError) as caught:
        await getattr(client.runtime, method)(request)
    assert caught.value.code() is code
    assert words in caught.value.details()


async def test_only_what_runs(served: Served) -> None:
    client = served.connect()
    pod = served.engine.add_pod(stopping_at=1)
    container = served.engine.add_container(pod)
    calls = (
        client.runtime.Exec(client.m.ExecRequest(container_id=container.id, cmd=["a"], stdout=True)),
        client.runtime.Attach(client.m.AttachRequest(container_id=container.id, stdout=True)),
        client.runtime.PortForward(client.m.PortForwardRequest(pod_sandbox_id=pod.id)),
    )
    for call in calls:
        with pytest.raises(grpc.RpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
