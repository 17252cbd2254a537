"""What carries a SPDY connection: a socket that was an HTTP connection, or the binary messages of a WebSocket."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from aiohttp import WSMsgType, web

from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.limits import COPY_BYTES, HELD_BYTES, UNSENT_BYTES

_TCP_ESTABLISHED: Final = 1
_GONE: Final = "the client has closed its connection"


class Carrier(Protocol):
    async def receive(self) -> bytes:
        """The next bytes; empty at the end, however it came."""
        ...

    async def send(self, *parts: bytes, wait: bool = True) -> None:
        """All parts together. With `wait`, returns when the next would not pile up; without, unless much has. Raises
        ClientGone."""
        ...

    async def end(self) -> None:
        """Nothing will be sent any more; what was sent still arrives."""
        ...

    def left(self) -> bool:
        """Whether the client has ended the connection, as the kernel sees it: also while it is not being read."""
        ...

    def unsent(self) -> int:
        """Bytes that have not reached the client's side yet: what it would lose if the connection were closed now."""
        ...

    def abort(self) -> None: ...


def tcp_unsent(transport: asyncio.Transport | None) -> int:
    """In our buffer, and in the kernel's."""
    if transport is None or transport.is_closing():
        return 0
    peer = transport.get_extra_info("socket")
    queued = fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, bytes(4)) if peer is not None else bytes(4)
    return transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)


def tcp_left(transport: asyncio.Transport | None) -> bool:
    """The end of a connection that nobody reads is seen in its TCP state alone."""
    if transport is None or transport.is_closing():
        return True
    peer = transport.get_extra_info("socket")
    if peer is None or peer.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    return bool(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _TCP_ESTABLISHED)


class SocketCarrier(asyncio.Protocol):
    """Takes a transport over from an HTTP server, once the upgrade is agreed upon."""

    def __init__(self, transport: asyncio.Transport, on_lost: Callable[[Exception | None], None]) -> None:
        """`on_lost` is the former owner's connection_lost."""
        self._transport = transport
        self._on_lost = on_lost
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._lost = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    def take_over(self, answer: bytes) -> None:
        """Sends the answer to the upgrade. Whatever the client sends after it is ours: no await may come between."""
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES)
        self._transport.set_protocol(self)
        self._transport.write(answer)

    async def receive(self) -> bytes:
        while not self._chunks:
            if self._ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        chunk = self._chunks.popleft()
        paused = self._held >= 2 * COPY_BYTES
        self._held -= len(chunk)
        if paused and self._held < 2 * COPY_BYTES and not self._ended:
            self._transport.resume_reading()
        return chunk

    async def send(self, *parts: bytes, wait: bool = True) -> None:
        if self._lost or self._transport.is_closing():
            raise ClientGone(_GONE)
        self._transport.writelines(parts)
        if not self._writable.is_set() and (wait or self._transport.get_write_buffer_size() > HELD_BYTES):
            await self._writable.wait()
            if self._lost:
                raise ClientGone(_GONE)

    async def end(self) -> None:
        if self._lost or self._transport.is_closing():
            return
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError as error:  # it has reset the connection, and we have not been told yet
            raise ClientGone(_GONE) from error

    def left(self) -> bool:
        return self._lost or tcp_left(self._transport)

    def unsent(self) -> int:
        return tcp_unsent(self._transport)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        was, self._held = self._held, self._held + len(data)
        if was < 2 * COPY_BYTES <= self._held:
            self._transport.pause_reading()
        self._readable.set()

    def eof_received(self) -> bool:
        """Its end is read in its turn; the transport stays, for what is still to be sent (not with TLS, which has no
        half of a connection)."""
        self._ended = True
        self._readable.set()
        return self._transport.can_write_eof()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._ended = True
        self._readable.set()
        self._writable.set()
        self._on_lost(exc)


class TunnelCarrier:
    """SPDY inside a WebSocket: the bytes of binary messages, wherever those begin and end."""

    def __init__(self, socket_: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self._socket = socket_
        self._transport = transport

    async def receive(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                if message.data:
                    return bytes(message.data)
            elif message.type is WSMsgType.PING:
                await self._socket.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                raise ProtocolError("tunnel: text message instead of a binary one")
            elif message.type is WSMsgType.ERROR:
                raise ProtocolError(f"tunnel: {message.data}")
            elif message.type is not WSMsgType.PONG:
                return b""

    async def send(self, *parts: bytes, wait: bool = True) -> None:
        try:
            await self._socket.send_bytes(b"".join(parts))
        except ConnectionError as error:
            raise ClientGone(_GONE) from error

    async def end(self) -> None:
        await self._socket.close()

    def left(self) -> bool:
        return tcp_left(self._transport)

    def unsent(self) -> int:
        return tcp_unsent(self._transport)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
