"""Bytes that no client sends: each costs its own call, or its own connection, and nothing else."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isulad_py.wire import codec
from isulad_py.wire.cri.table import cri_methods
from tests.cri_messages import messages
from tests.fakes.services import FakeEngine
from tests.wire.conftest import Served
from tests.wire.raw import RawClient, message

OK, INVALID, UNIMPLEMENTED, EXHAUSTED, DEADLINE = "0", "3", "12", "8", "4"


@pytest.fixture
async def raw(served: Served) -> RawClient:
    return await served.connect_raw()


async def still_serves(served: Served) -> bool:
    client = served.connect()
    return bool((await client.runtime.Version(client.m.VersionRequest())).version)


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (message(), OK, ""),
        (message(b"\x0a\x05v"), INVALID, "request: not a valid VersionRequest"),
        (message(b"\xff" * 40), INVALID, "request: not a valid VersionRequest"),
        (message(b"\x0a\x01\xff"), INVALID, "request: not a valid VersionRequest"),
        (b"", INVALID, "request: there is none"),
        (b"\0\0", INVALID, "request: ends in the middle"),
        (message(b"abc", length=10), INVALID, "request: ends in the middle"),
        (message(compressed=True), UNIMPLEMENTED, "request: compressed messages"),
        (message(length=2**32 - 1), EXHAUSTED, "request: 4294967295 bytes"),
        (message() + b"more", OK, ""),
    ],
)
async def test_messages(served: Served, raw: RawClient, data: bytes, status: str, words: str) -> None:
    answer = await raw.call(data)
    assert answer.status == status
    assert answer.message.startswith(words)
    assert await still_serves(served)


@pytest.mark.parametrize(
    ("headers", "drop", "status"),
    [
        ({"grpc-timeout": "1S"}, (), OK),
        ({"grpc-timeout": "99999999H"}, (), OK),
        ({"grpc-timeout": "0n"}, (), DEADLINE),
        ({"grpc-timeout": "soon"}, (), INVALID),
        ({"grpc-timeout": "999999999S"}, (), INVALID),
        ({"grpc-timeout": "-1S"}, (), INVALID),
        ({"content-type": "application/grpc+proto"}, (), OK),
        ({"content-type": "application/json"}, (), "http 415"),
        ({}, ("content-type",), "http 415"),
        ({":method": "GET"}, (), "http 405"),
        ({}, (":method",), "http 405"),
        ({}, (":path",), UNIMPLEMENTED),
        ({}, ("te",), OK),
        ({"x-bin": "%%%", "grpc-encoding": "gzip"}, (), OK),
    ],
)
async def test_headers(
    served: Served, raw: RawClient, headers: dict[str, str], drop: tuple[str, ...], status: str
) -> None:
    assert (await raw.call(message(), headers, drop=drop)).status == status
    assert await still_serves(served)


async def test_a_request_of_too_many_parts_is_refused_unread(served: Served, client: Any) -> None:
    """Two bytes each, half a kilobyte in memory: the bytes alone are no bound."""
    bomb = client.m.CreateContainerRequest(pod_sandbox_id="a", config={"mounts": [{}] * 90_000})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.runtime.CreateContainer(bomb)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "more than 60000 fields" in (caught.value.details() or "")


async def test_a_large_request_that_is_honest(served: Served, client: Any) -> None:
    pod = served.engine.add_pod()
    config = {
        "metadata": {"name": "c"},
        "image": {"image": "i"},
        "envs": [{"key": f"K{number}", "value": b"v" * 1000} for number in range(2000)],
    }
    request = client.m.CreateContainerRequest(pod_sandbox_id=pod.id, config=config)
    created = (await client.runtime.CreateContainer(request)).container_id
    assert len(served.engine.registry.containers[created].config.envs) == 2000


async def test_an_answer_that_no_kubelet_takes_is_refused_here(served: Served, client: Any) -> None:
    served.engine.add_pod(config=None, runtime_handler="h" * 17_000_000)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.runtime.ListPodSandbox(client.m.ListPodSandboxRequest())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "answer: " in (caught.value.details() or "")


METHODS = [method for path, method in cri_methods(FakeEngine().services()).items() if method.unary is not None]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
async def test_no_request_at_all_is_unexpected(data: st.DataObject) -> None:
    """Random messages of every kind: served, or refused with an error of ours."""
    engine = FakeEngine()
    engine.add_container(engine.add_pod())
    table = cri_methods(engine.services())
    method = table[f"/{data.draw(st.sampled_from(METHODS)).name}"]
    assert method.unary is not None
    request = data.draw(messages(method.request))
    try:
        answer = await method.unary(await codec.decode(bytes(request), method.request))
    except Exception as error:
        refusal = error
    else:
        codec.encode(answer)
        return
    assert type(refusal).__module__ == "isulad_py.model.errors"
