"""Clients that break the rules: each loses its own connection, with a reason in the log, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import AsyncIterator

import pytest
import structlog

from tests import spdy_client, spdy_peer
from tests.spdy_peer import Peer
from tests.unit.streaming.stand import ALL, Stand

PEER = Peer()
BOMB = PEER.control(spdy_peer.SYN_STREAM, struct.pack(">IIH", 11, 0, 0) + Peer().compress(bytes(10_000_000)))

SPDY = {
    "wrong version": PEER.control(spdy_peer.PING, b"\0\0\0\1", version=2),
    "long control frame": struct.pack(">II", 0x80030001, 0xFFFFFF) + bytes(100_000),
    "header bomb": BOMB,
    "rubbish for headers": PEER.control(spdy_peer.SYN_STREAM, struct.pack(">IIH", 11, 0, 0) + b"\xff" * 40),
    "even stream": Peer().syn_stream(12, {}),
    "reply": PEER.control(spdy_peer.SYN_REPLY, b"\0\0\0\2"),
    "data on stream 0": PEER.data(0, b"x"),
    "settings that lie": PEER.control(spdy_peer.SETTINGS, b"\xff\xff\xff\xff"),
    "window out of range": 2 * PEER.pair(spdy_peer.WINDOW_UPDATE, 0, 0x7FFFFFFF),
    "http": b"\x80GET / HTTP/1.1\r\n\r\n",
    "bytes": b"\xff" + os.urandom(100_000),
}

WEBSOCKET = {
    "reserved bits": b"\xf2\x82\0\0\0\0\x00x",
    "unknown opcode": b"\x83\x80\0\0\0\0",
    "long ping": b"\x89\xfe\x01\x00\0\0\0\0" + bytes(256),
    "fragmented ping": b"\x09\x80\0\0\0\0",
    "continuation of nothing": b"\x80\x80\0\0\0\0",
    "huge": b"\x82\xff" + b"\x00\x00\x00\xff\xff\xff\xff\xff" + bytes(4),
    "huge in pieces": b"".join(
        bytes((opcode,)) + b"\xff" + struct.pack(">Q", 1_000_000) + bytes(4) + bytes(1_000_000)
        for opcode in (0x02, 0x00, 0x00, 0x00, 0x00)
    ),
    "channel": b"\x82\x82\0\0\0\0\x09x",
    "bytes": b"\xff" + os.urandom(10_000),
}


@pytest.fixture
async def bystander(stand: Stand) -> AsyncIterator[None]:
    """A session beside, which must work before and after."""
    client = await stand.spdy(stand.exec_url("cat", wishes=ALL))
    _, stdin, stdout, _ = await client.opened("error", "stdin", "stdout", "stderr")
    await stdin.write(b"before")
    await stdout.read_until(b"before")
    yield
    await stdin.write(b"after")
    await stdout.read_until(b"after")


def reasons(logs: list[structlog.typing.EventDict]) -> list[str]:
    return [str(entry["reason"]) for entry in logs if entry["event"] == "streaming client misbehaves"]


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("name", SPDY)
async def test_spdy(stand: Stand, name: str) -> None:
    client = await stand.spdy(stand.exec_url("sleep", "9"))
    await client.opened("error", "stdin", "stdout", "stderr")
    while len(stand.runtime.commands) < 2:
        await asyncio.sleep(0)
    with structlog.testing.capture_logs() as logs:
        with contextlib.suppress(ConnectionError):
            await client.send(SPDY[name])
        await stand.process.ended
        while not reasons(logs):
            await asyncio.sleep(0)
    assert reasons(logs)[0].startswith("spdy: ")
    await client.closed.wait()


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("name", WEBSOCKET)
async def test_websocket(stand: Stand, name: str) -> None:
    lines = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: v5.channel.k8s.io",
    ]
    reader, writer, head = await spdy_client.request(stand.exec_url("sleep", "9"), lines)
    assert " 101 " in head
    while len(stand.runtime.commands) < 2:
        await asyncio.sleep(0)
    with structlog.testing.capture_logs() as logs:
        with contextlib.suppress(ConnectionError):
            writer.write(WEBSOCKET[name])
            await writer.drain()
        await stand.process.ended
        while not reasons(logs):
            await asyncio.sleep(0)
    assert reasons(logs)[0].startswith(("websocket: ", "channels: "))
    with contextlib.suppress(ConnectionError):
        while await reader.read(65536):
            pass
    writer.transport.abort()


@pytest.mark.usefixtures("bystander")
async def test_a_flood_of_pings_from_a_client_that_does_not_read(stand: Stand) -> None:
    """Its answers pile up to a bound; then it is not read any more."""
    client = await stand.spdy(stand.exec_url("sleep", "9"))
    await client.opened("error", "stdin", "stdout", "stderr")
    client.may_read.clear()
    await client.send(client.peer.ping(1))
    flood = client.peer.ping(1) * 10_000
    sent = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while sent < 1000:
                await client.send(flood)
                sent += 1
    assert sent < 1000
    await client.close()
    await stand.process.ended


@pytest.mark.usefixtures("bystander")
async def test_a_flood_of_streams(stand: Stand) -> None:
    client = await stand.spdy(stand.forward_url(), "portforward.k8s.io")
    for number in range(1, 10_001, 2):
        headers = {"streamtype": "error", "port": "80", "requestid": str(number)}
        await client.send(client.peer.syn_stream(number, headers))
    await client.send(client.peer.ping(1))
    await client.heard(spdy_peer.PING)
    refused = [frame for frame in client.control if frame.kind == spdy_peer.RST_STREAM]
    assert len(refused) == 5000 - 2048
