"""A WebSocket with numbered channels, as coroutines see it."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Final

from aiohttp import WSMsgType, web

from isulad_py.streaming.carrier import tcp_left, tcp_unsent
from isulad_py.streaming.channels import ChannelCodec
from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.inbox import Budget, Inbox
from isulad_py.streaming.limits import HELD_BYTES, StreamLimits

_GONE: Final = "the client has closed its connection"
_NORMAL: Final = struct.pack(">H", 1000)
_PROTOCOL_ERROR: Final = struct.pack(">H", 1002)


class Channel:
    """Implements ports.streams.ByteSource and ByteSink. No subprotocol says the end of a channel to a client: `close`
    does nothing."""

    def __init__(self, link: ChannelLink, number: int, inbox: Inbox) -> None:
        self.inbox = inbox
        self._link = link
        self._number = number

    async def read(self, limit_bytes: int) -> bytes:
        return await self.inbox.read(limit_bytes)

    async def write(self, data: bytes) -> None:
        await self._link.send(self._number, data)

    async def close(self) -> None: ...


class ChannelLink:
    """`pump` has to run as long as anything else is done with it or its channels."""

    def __init__(
        self,
        websocket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
        codec: ChannelCodec,
        inputs: frozenset[int],
        limits: StreamLimits,
    ) -> None:
        """`inputs` are the channels from which something will be read; what comes for others is thrown away."""
        self._websocket = websocket
        self._transport = transport
        self._codec = codec
        self._limits = limits
        self._budget = Budget(HELD_BYTES)
        self._channels: dict[int, Channel] = {}
        self._inputs = inputs
        self._loop = asyncio.get_running_loop()
        self._leaving = False
        self._turn = asyncio.Lock()
        self._owed_pong: bytes | None = None
        self.ended = asyncio.Event()
        """The client sends no more."""
        self.active_at = self._loop.time()
        """Of the loop's time: when something was last received or sent."""

    def channel(self, number: int) -> Channel:
        if number not in self._channels:
            inbox = Inbox(self._budget)
            if number not in self._inputs:
                inbox.discard()
            self._channels[number] = Channel(self, number, inbox)
        return self._channels[number]

    async def pump(self) -> None:
        """Receives until the client's end. Raises ClientGone then, unless we are at `end` ourselves; ProtocolError for
        what it must not send."""
        error: Exception = ClientGone(_GONE)
        try:
            while await self._receive():
                self.active_at = self._loop.time()
                if not self._budget.has_room:
                    await self._room()
            if not self._leaving:
                raise error
        except ProtocolError as reason:
            error = reason
            with contextlib.suppress(ConnectionError):
                await self._websocket.send_frame(_PROTOCOL_ERROR, WSMsgType.CLOSE)
            raise
        finally:
            self.ended.set()
            for channel in self._channels.values():
                channel.inbox.end(error)

    async def _receive(self) -> bool:
        """One message. False at the end."""
        message = await self._websocket.receive()
        match message.type:
            case WSMsgType.BINARY | WSMsgType.TEXT:
                self._take(bytes(message.data))
            case WSMsgType.PING:
                await self._answer(message.data)
            case WSMsgType.PONG:
                pass
            case WSMsgType.ERROR:
                raise ProtocolError(f"websocket: {message.data}")
            case _:
                return False
        return True

    def _take(self, data: bytes) -> None:
        message = self._codec.decode(data)
        if message is None:
            return
        inbox = self.channel(message.channel).inbox
        inbox.feed(message.data)
        if message.closes:
            inbox.end()

    async def _room(self) -> None:
        """A client that leaves while it is not being read has to be noticed all the same. Its goodbye waits behind what
        it has sent; but a system whose program has gone resets a connection on which something comes."""
        while not self._budget.has_room:
            try:
                async with asyncio.timeout(self._limits.watch_seconds):
                    await self._budget.room()
            except TimeoutError:
                if tcp_left(self._transport):
                    raise ClientGone(_GONE) from None
                if not self._turn.locked():
                    await self._send_frame(b"", WSMsgType.PING)

    async def send(self, number: int, data: bytes) -> None:
        """Returns when the next would not pile up. Raises ClientGone."""
        message = self._codec.encode(number, data)
        kind = WSMsgType.TEXT if self._codec.is_text else WSMsgType.BINARY
        # One at a time: aiohttp lets all senders wait on one future, which the first that is cancelled cancels for all.
        async with self._turn:
            await self._send_frame(message, kind)
            await self._pay_pong()
        self.active_at = self._loop.time()

    async def _answer(self, ping: bytes) -> None:
        """Of several pings only the last needs its pong (RFC 6455, 5.5.3). It must not wait for a client that does not
        read: input goes on."""
        self._owed_pong = ping
        if not self._turn.locked():
            async with self._turn:
                await self._pay_pong()

    async def _pay_pong(self) -> None:
        if self._owed_pong is not None:
            owed, self._owed_pong = self._owed_pong, None
            await self._send_frame(owed, WSMsgType.PONG)

    async def _send_frame(self, message: bytes, kind: WSMsgType) -> None:
        try:
            await self._websocket.send_frame(message, kind)
        except ConnectionError as error:
            raise ClientGone(_GONE) from error

    async def end(self) -> None:
        """Says goodbye and waits until the client, having read to the end, says so too; then for a bounded time. Never
        raises for a client that has gone."""
        self._leaving = True
        with contextlib.suppress(ConnectionError):
            await self._websocket.send_frame(_NORMAL, WSMsgType.CLOSE)
        while not self.ended.is_set() and tcp_unsent(self._transport) and not self._is_idle():
            await self._wait_end(self._limits.watch_seconds)
        await self._wait_end(self._limits.linger_seconds)

    def _is_idle(self) -> bool:
        return self._loop.time() - self.active_at > self._limits.idle_seconds

    async def _wait_end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
