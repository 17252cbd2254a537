from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from isulad_py.model.errors import HostFailure, Unavailable
from isulad_py.streaming.health import Conditions, HealthServer
from isulad_py.telemetry.metrics import Metrics, Population


class Stand:
    """A running server and a client that speaks bytes."""

    def __init__(self, *, limit: int = 8, seconds: float = 30.0) -> None:
        self.conditions: dict[str, str] = {"runtime": "", "network": ""}
        self.server = HealthServer(
            metrics=Metrics(version="0"),
            population=lambda: Population(pods={"ready": 3}),
            ready=self._ready,
            connection_limit=limit,
            connection_seconds=seconds,
        )
        self.port = 0

    async def _ready(self) -> Conditions:
        if "fail" in self.conditions:
            raise Unavailable("stopping")
        return self.conditions

    async def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        text = await self.raw(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = text.partition("\r\n\r\n")
        return int(head.split()[1]), body

    async def raw(self, data: bytes) -> str:
        """Everything until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            return (await reader.read()).decode()
        finally:
            writer.close()


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    made = Stand()
    made.port = await made.server.start(0)
    yield made
    await made.server.close()


async def test_alive(stand: Stand) -> None:
    assert await stand.ask("/healthz") == (200, "ok\n")
    assert (await stand.ask("/healthz", "HEAD"))[0] == 200


async def test_ready_until_a_condition_has_a_reason(stand: Stand) -> None:
    status, body = await stand.ask("/readyz")
    assert (status, json.loads(body)) == (
        200,
        {"ready": True, "conditions": ["network", "runtime"], "reasons": {}},
    )
    stand.conditions["network"] = "no CNI configuration in /etc/cni/net.d"
    status, body = await stand.ask("/readyz")
    assert status == 503
    assert json.loads(body)["reasons"] == {"network": "no CNI configuration in /etc/cni/net.d"}


async def test_an_engine_that_cannot_tell_is_not_ready(stand: Stand) -> None:
    stand.conditions["fail"] = ""
    status, body = await stand.ask("/readyz")
    assert (status, json.loads(body)["reasons"]) == (503, {"engine": "stopping"})


async def test_metrics_are_fresh(stand: Stand) -> None:
    status, body = await stand.ask("/metrics")
    assert status == 200
    assert 'isulad_pods{state="ready"} 3.0' in body


async def test_nothing_else_is_answered(stand: Stand) -> None:
    assert (await stand.ask("/"))[0] == 404
    assert (await stand.ask("/healthz", "POST"))[0] == 405
    assert "400" in (await stand.raw(b"rubbish\r\n\r\n")).splitlines()[0]
    assert "400" in (await stand.raw(b"GET /healthz HTTP/1.1\r\nX: " + 20_000 * b"x" + b"\r\n\r\n")).splitlines()[0]


async def test_silent_connections_are_bounded_in_number_and_time() -> None:
    stand = Stand(limit=3, seconds=0.2)
    stand.port = await stand.server.start(0)
    silent = [await asyncio.open_connection("127.0.0.1", stand.port) for _ in range(3)]
    try:
        assert await stand.raw(b"") == ""
        for reader, _ in silent:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        while not await stand.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
            pass  # the server learns of its own cuts a turn of the loop later
    finally:
        for _, writer in silent:
            writer.close()
        await stand.server.close()


async def test_a_taken_port_is_named(stand: Stand) -> None:
    other = Stand()
    with pytest.raises(HostFailure, match=str(stand.port)):
        await other.server.start(stand.port)
    await other.server.close()
