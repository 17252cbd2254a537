"""A SPDY connection with its streams, as coroutines see it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from isulad_py.model.errors import Unavailable
from isulad_py.streaming.carrier import Carrier
from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.inbox import Budget, Inbox
from isulad_py.streaming.limits import COPY_BYTES, HELD_BYTES, StreamLimits
from isulad_py.streaming.spdy import Event, Opened, Received, Reset, SpdyServer, WindowsMoved
from isulad_py.streaming.spdy_frames import ResetStatus

_GONE: Final = "the client has closed its connection"


class SpdyStream:
    """Implements ports.streams.ByteSource and ByteSink. A stream that the client resets is at its end, and takes no
    more: Unavailable."""

    def __init__(self, link: SpdyLink, number: int, headers: Mapping[str, str], inbox: Inbox) -> None:
        self.number = number
        self.headers = headers
        self.inbox = inbox
        self.reset_by_client = asyncio.Event()
        self._link = link

    async def reply(self) -> None:
        """Accepts the stream."""
        await self._link.reply(self)

    async def read(self, limit_bytes: int) -> bytes:
        data = await self.inbox.read(limit_bytes)
        await self._link.send_control()
        return data

    async def write(self, data: bytes) -> None:
        """The client's window and the connection are waited for."""
        await self._link.write(self, data)

    async def close(self) -> None:
        """No more from us. Idempotent."""
        await self._link.finish(self)

    async def reset(self, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """The end in both directions. Idempotent."""
        self.inbox.discard()
        await self._link.reset(self, status)


class SpdyLink:
    """`pump` has to run as long as anything else is done with it or its streams."""

    def __init__(self, carrier: Carrier, limits: StreamLimits) -> None:
        self._carrier = carrier
        self._limits = limits
        self._server = SpdyServer()
        self._streams: dict[int, SpdyStream] = {}
        self._budget = Budget(HELD_BYTES)
        self._opened: asyncio.Queue[SpdyStream] = asyncio.Queue()
        self._accepts = True
        self._leaving = False
        self._moved = asyncio.Event()
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        """The client sends no more."""
        self.active_at = self._loop.time()
        """Of the loop's time: when something was last received or sent."""

    # What comes in

    async def pump(self) -> None:
        """Receives until the client's end. Raises ClientGone then, unless we are at `end` ourselves; ProtocolError for
        what it must not send."""
        error: Exception = ClientGone(_GONE)
        try:
            await self.send_control()
            while data := await self._carrier.receive():
                self.active_at = self._loop.time()
                for event in self._server.receive(data):
                    self._on(event)
                await self.send_control()
                if not self._budget.has_room:
                    await self._room()
            if not self._leaving:
                raise error
        except ProtocolError as reason:
            error = reason
            with contextlib.suppress(ClientGone):
                await self.send_control()
            raise
        finally:
            self._end(error)

    def _on(self, event: Event) -> None:
        match event:
            case Received(stream_id=number, data=data, fin=fin):
                stream = self._streams.get(number)
                if stream is None:
                    self._server.consumed(number, len(data))
                    return
                stream.inbox.feed(data)
                if fin:
                    stream.inbox.end()
                    self._forget_if_over(stream)
            case Opened():
                self._on_opened(event)
            case Reset(stream_id=number):
                self._on_reset(number)
            case WindowsMoved():
                self._wake_writers()

    def _on_opened(self, event: Opened) -> None:
        number = event.stream_id
        if not self._accepts:
            self._server.reset(number, ResetStatus.REFUSED_STREAM)
            return
        inbox = Inbox(self._budget, on_taken=lambda size: self._server.consumed(number, size))
        stream = self._streams[number] = SpdyStream(self, number, event.headers, inbox)
        if event.fin:
            inbox.end()
        self._opened.put_nowait(stream)

    def _on_reset(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.inbox.discard()
            stream.inbox.end()
            stream.reset_by_client.set()
            self._wake_writers()

    async def _room(self) -> None:
        """A client that leaves while it is not being read has to be noticed all the same. Its goodbye waits behind what
        it has sent; but a system whose program has gone resets a connection on which something comes."""
        while not self._budget.has_room:
            try:
                async with asyncio.timeout(self._limits.watch_seconds):
                    await self._budget.room()
            except TimeoutError:
                if self._carrier.left():
                    raise ClientGone(_GONE) from None
                self._server.knock()
                await self.send_control()

    def _end(self, error: Exception) -> None:
        self.ended.set()
        for stream in self._streams.values():
            stream.inbox.end(error)
        self._wake_writers()

    async def accept(self) -> SpdyStream:
        """The next stream that the client opens; it waits for `reply` or `reset`."""
        return await self._opened.get()

    async def refuse_more(self) -> None:
        """Further streams are reset."""
        self._accepts = False
        while not self._opened.empty():
            await self._opened.get_nowait().reset(ResetStatus.REFUSED_STREAM)

    # What goes out

    async def reply(self, stream: SpdyStream) -> None:
        self._server.reply(stream.number)
        await self.send_control()

    async def reset(self, stream: SpdyStream, status: ResetStatus) -> None:
        self._streams.pop(stream.number, None)
        self._server.reset(stream.number, status)
        self._wake_writers()
        await self.send_control()

    async def finish(self, stream: SpdyStream) -> None:
        head = self._server.data_head(stream.number, 0, fin=True)
        if head:
            self._forget_if_over(stream)
            await self._carrier.send(self._server.take_outgoing(), head, wait=False)

    async def write(self, stream: SpdyStream, data: bytes) -> None:
        left = data
        while left:
            await self._wait_until_sendable(stream)
            async with self._turn:  # one at a time: that bounds what is unsent, and is fair
                size = min(self._server.sendable(stream.number), len(left), COPY_BYTES)
                head = self._server.data_head(stream.number, size) if size else b""
                if not head:
                    continue  # the window was used, or the stream reset, while this one waited for its turn
                part, left = (left, b"") if size == len(left) else (left[:size], left[size:])
                await self._carrier.send(self._server.take_outgoing(), head, part)
            self.active_at = self._loop.time()

    async def _wait_until_sendable(self, stream: SpdyStream) -> None:
        while True:
            if self.ended.is_set():
                raise ClientGone(_GONE)
            if not self._server.is_open(stream.number):
                raise Unavailable(f"stream {stream.number} takes no more")
            if self._server.sendable(stream.number):
                return
            await self._wait_for_window()

    async def _wait_for_window(self) -> None:
        moved = self._moved
        if not self._server.ask_flow_control():
            await moved.wait()
            return
        await self.send_control()
        try:
            async with asyncio.timeout(self._limits.probe_seconds):
                await moved.wait()
        except TimeoutError:
            self._server.assume_no_flow_control()
            self._wake_writers()

    async def send_control(self) -> None:
        """Answers and window updates, ahead of data that waits."""
        outgoing = self._server.take_outgoing()
        if outgoing:
            await self._carrier.send(outgoing, wait=False)

    async def end(self, goodbye_seconds: float = 0.0) -> None:
        """Lets the client end the connection; then ends it from this side, and waits until the client has read to the
        end. Each for a bounded time; never raises for a client that has gone."""
        self._leaving, self._accepts = True, False
        await self._wait_read(goodbye_seconds)
        try:
            self._server.go_away()
            await self.send_control()
            await self._carrier.end()
        except ClientGone:
            return
        await self._wait_read(self._limits.linger_seconds)

    async def _wait_read(self, seconds: float) -> None:
        """For the client's end: as long as it has something to read, however slowly it does, and then so long."""
        while not self.ended.is_set() and self._carrier.unsent() and not self._is_idle():
            await self._wait_end(self._limits.watch_seconds)
        await self._wait_end(seconds)

    def _is_idle(self) -> bool:
        return self._loop.time() - self.active_at > self._limits.idle_seconds

    async def _wait_end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    def _forget_if_over(self, stream: SpdyStream) -> None:
        """Ended in both directions, it is no longer looked up; its reader keeps it."""
        if stream.inbox.ended and not self._server.is_open(stream.number):
            self._streams.pop(stream.number, None)

    def _wake_writers(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
