"""How the server ends, and how many it serves."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from isulad_py.wire import server
from tests.wire.conftest import Served
from tests.wire.raw import message


async def test_stopping_lets_calls_end(served: Served, client: Any) -> None:
    go = served.engine.faults.hold("readiness.status")
    call = client.runtime.Status(client.m.StatusRequest())
    waiting = asyncio.ensure_future(call.code())
    await served.engine.faults.wait_entered("readiness.status")
    stopping = asyncio.ensure_future(served.server.stop(60))
    await asyncio.sleep(0)
    go.set()
    await stopping
    assert await waiting is grpc.StatusCode.OK


async def test_stopping_cancels_what_does_not_end(served: Served, client: Any) -> None:
    served.engine.faults.hold("readiness.status")
    call = client.runtime.Status(client.m.StatusRequest())
    waiting = asyncio.ensure_future(call.code())
    await served.engine.faults.wait_entered("readiness.status")
    await served.server.stop(0)
    assert await waiting is grpc.StatusCode.UNAVAILABLE
    assert await call.details() == "the daemon is stopping"
    assert served.engine.cancelled == ["readiness.status"]


async def test_stopping_ends_streams_at_once(served: Served, client: Any) -> None:
    stream = client.runtime.GetContainerEvents(client.m.GetEventsRequest())
    await stream.initial_metadata()
    await served.server.stop(60)
    assert await stream.code() is grpc.StatusCode.UNAVAILABLE
    assert served.engine.subscribed == 0


async def test_clients_are_told_before_the_end(served: Served) -> None:
    served.engine.faults.hold("readiness.status")
    raw = await served.connect_raw()
    stream = raw.begin({":path": "/runtime.v1.RuntimeService/Status"})
    raw.send(stream, message())
    await served.engine.faults.wait_entered("readiness.status")
    await served.server.stop(0)
    await raw.read_to_end()
    assert raw.goodbye is not None
    assert (raw.goodbye.error_code, raw.goodbye.last_stream_id) == (0, stream)
    assert raw.answers[stream].status == "14"


async def test_there_are_only_so_many_connections(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_LIMIT", 2)
    first, second = [await served.connect_raw() for _ in range(2)]
    assert (await first.call(message())).status == "0"
    assert (await second.call(message())).status == "0"
    third = await served.connect_raw()
    await third.read_to_end()
    await second.close()
    while True:
        fourth = await served.connect_raw()
        try:
            answer = await fourth.call(message())
        except (ConnectionError, BrokenPipeError):
            continue
        assert answer.status == "0"
        break
