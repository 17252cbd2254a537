"""Most of it is tried through tests of the sessions; here is what those cannot bring about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import WSMessage, WSMsgType

from isulad_py.streaming.channel_link import ChannelLink
from isulad_py.streaming.channels import UNNAMED, ChannelCodec
from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.limits import HELD_BYTES, StreamLimits


class Socket:
    """What of an aiohttp WebSocket is used."""

    def __init__(self) -> None:
        self.sent: list[tuple[WSMsgType, bytes]] = []
        self.going = asyncio.Event()
        self.going.set()
        self.broken = False
        self._incoming: asyncio.Queue[WSMessage] = asyncio.Queue()

    def tell(self, kind: WSMsgType, data: object = b"") -> None:
        self._incoming.put_nowait(WSMessage(kind, data, None))

    async def receive(self) -> WSMessage:
        return await self._incoming.get()

    async def send_frame(self, message: bytes, opcode: WSMsgType) -> None:
        if self.broken:
            raise ConnectionResetError
        self.sent.append((opcode, message))
        if opcode is WSMsgType.BINARY:
            await self.going.wait()


class Ends:
    def __init__(self, inputs: frozenset[int] = frozenset({0})) -> None:
        self.socket = Socket()
        socket: Any = self.socket
        limits = StreamLimits(watch_seconds=0.02, linger_seconds=0.02)
        self.link = ChannelLink(socket, None, ChannelCodec(UNNAMED, 5), inputs, limits)
        self.pump = asyncio.ensure_future(self.link.pump())


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    made = Ends()
    yield made
    made.pump.cancel()
    await asyncio.wait({made.pump})


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_channels_both_ways(ends: Ends) -> None:
    ends.socket.tell(WSMsgType.BINARY, b"\0in")
    ends.socket.tell(WSMsgType.BINARY, b"")
    ends.socket.tell(WSMsgType.BINARY, b"\xff\0")
    channel = ends.link.channel(0)
    assert [await channel.read(10), await channel.read(10)] == [b"in", b""]
    await channel.write(b"out")
    await channel.close()
    assert ends.socket.sent == [(WSMsgType.BINARY, b"\0out")]


async def test_of_pings_during_a_slow_write_the_last_is_answered(ends: Ends) -> None:
    ends.socket.going.clear()
    writing = asyncio.ensure_future(ends.link.send(1, b"x"))
    await settle()
    for text in (b"1", b"2"):
        ends.socket.tell(WSMsgType.PING, text)
    ends.socket.tell(WSMsgType.BINARY, b"\0in")
    assert await ends.link.channel(0).read(10) == b"in", "input goes on"
    ends.socket.going.set()
    await writing
    assert ends.socket.sent[1:] == [(WSMsgType.PONG, b"2")]
    ends.socket.tell(WSMsgType.PING, b"3")
    ends.socket.tell(WSMsgType.PONG)
    await settle()
    assert ends.socket.sent[2:] == [(WSMsgType.PONG, b"3")]


@pytest.mark.parametrize("kind", [WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING])
async def test_a_client_that_goes(ends: Ends, kind: WSMsgType) -> None:
    reading = asyncio.ensure_future(ends.link.channel(0).read(1))
    ends.socket.tell(kind)
    for waiting in (ends.pump, reading):
        with pytest.raises(ClientGone):
            await waiting


async def test_a_client_that_is_gone_is_not_written_to(ends: Ends) -> None:
    ends.socket.broken = True
    with pytest.raises(ClientGone):
        await ends.link.send(1, b"x")
    await ends.link.end()


async def test_what_must_not_be_sent(ends: Ends) -> None:
    ends.socket.tell(WSMsgType.ERROR, ValueError("reserved bits"))
    with pytest.raises(ProtocolError, match="reserved bits"):
        await ends.pump
    assert ends.socket.sent == [(WSMsgType.CLOSE, b"\x03\xea")]


async def test_a_client_that_leaves_while_it_is_not_read(ends: Ends) -> None:
    ends.socket.tell(WSMsgType.BINARY, b"\0" + bytes(HELD_BYTES))
    with pytest.raises(ClientGone):
        await ends.pump  # there is no transport any more


async def test_our_goodbye(ends: Ends) -> None:
    ending = asyncio.ensure_future(ends.link.end())
    await settle()
    assert ends.socket.sent == [(WSMsgType.CLOSE, b"\x03\xe8")]
    ends.socket.tell(WSMsgType.CLOSE, 1000)
    await ending
    await ends.pump
