from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from isulad_py.streaming.carrier import SocketCarrier, tcp_left, tcp_unsent
from isulad_py.streaming.failures import ClientGone


class _Owner(asyncio.Protocol):
    """Whoever has the transport before."""

    def __init__(self, made: asyncio.Future[asyncio.Transport]) -> None:
        self._made = made

    def connection_made(self, transport: Any) -> None:
        self._made.set_result(transport)


class Joined:
    def __init__(self, carrier: SocketCarrier, transport: asyncio.Transport, far: socket.socket) -> None:
        self.carrier = carrier
        self.transport = transport
        self.far = far
        self.lost: list[Exception | None] = []

    async def far_reads(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await asyncio.get_running_loop().sock_recv(self.far, size - len(data))
            if not part:
                break
            data += part
        return data


@asynccontextmanager
async def joined() -> AsyncIterator[Joined]:
    """A carrier, and the socket at the other end of its connection."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[asyncio.Transport] = loop.create_future()
    server = await loop.create_server(lambda: _Owner(made), "127.0.0.1", 0)
    far = socket.socket()
    far.setblocking(False)
    await loop.sock_connect(far, server.sockets[0].getsockname())
    transport = await made
    lost: list[Exception | None] = []
    carrier = SocketCarrier(transport, lost.append)
    carrier.take_over(b"answer")
    found = Joined(carrier, transport, far)
    found.lost = lost
    assert await found.far_reads(6) == b"answer"
    try:
        yield found
    finally:
        transport.abort()
        far.close()
        server.close()
        await server.wait_closed()


async def test_both_ways_to_the_end() -> None:
    async with joined() as pair:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(pair.far, b"question")
        assert await pair.carrier.receive() == b"question"
        await pair.carrier.send(b"an", b"", b"swer")
        assert await pair.far_reads(6) == b"answer"
        pair.far.shutdown(socket.SHUT_WR)
        assert await pair.carrier.receive() == b""
        assert pair.carrier.left()
        await pair.carrier.send(b"late")
        await pair.carrier.end()
        assert await pair.far_reads(100) == b"late"


async def test_a_sender_waits_for_a_slow_reader() -> None:
    async with joined() as pair:
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while sent < 40_000_000:
                await pair.carrier.send(bytes(100_000))
                sent += 100_000

        sending = asyncio.ensure_future(flood())
        done, _ = await asyncio.wait({sending}, timeout=0.2)
        assert not done
        assert pair.transport.get_write_buffer_size() < 1_000_000
        assert pair.carrier.unsent() > 100_000
        await pair.carrier.send(b"a pong", wait=False)
        assert len(await pair.far_reads(40_000_006)) == 40_000_006
        await sending


async def test_what_is_not_taken_is_not_received() -> None:
    async with joined() as pair:
        sending = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(pair.far, bytes(30_000_000)))
        done, _ = await asyncio.wait({sending}, timeout=0.2)
        assert not done
        got = 0
        while got < 30_000_000:
            got += len(await pair.carrier.receive())
        await sending


async def test_a_client_that_leaves() -> None:
    async with joined() as pair:
        waiting = asyncio.ensure_future(pair.carrier.receive())
        await asyncio.sleep(0)
        assert not pair.carrier.left()
        pair.far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        pair.far.close()
        assert await waiting == b""
        with pytest.raises(ClientGone):
            for _ in range(3):
                await pair.carrier.send(b"x")
                await asyncio.sleep(0.01)
        assert pair.carrier.left()
        assert pair.carrier.unsent() == 0
        await pair.carrier.end()
        while not pair.lost:
            await asyncio.sleep(0)


async def test_senders_that_wait_are_woken_by_the_end() -> None:
    async with joined() as pair:

        async def flood() -> None:
            while True:
                await pair.carrier.send(bytes(1_000_000))

        sending = asyncio.ensure_future(flood())
        await asyncio.wait({sending}, timeout=0.05)
        pair.carrier.abort()
        with pytest.raises(ClientGone):
            await sending


def test_no_transport_at_all() -> None:
    assert tcp_left(None)
    assert tcp_unsent(None) == 0
