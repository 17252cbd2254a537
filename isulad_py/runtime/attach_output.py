"""What an attached client is sent by the monitor: sorted into streams, held while it is not read, bounded.

conmon sends what it has read to every client, one packet at a time: first a byte that says which stream, then the
bytes. It waits until the client has taken it, and in this time neither reads the container's output nor does anything
else. So a client that is slow slows the container, as it does elsewhere; but one that takes nothing at all is given up,
and one that is slow while the container ends must not keep the exit from being seen.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.host import packets, pidfd
from isulad_py.model.errors import EngineError, ResourceExhausted
from isulad_py.ports.streams import StreamWishes

log = structlog.get_logger(__name__)

STDOUT: Final = 2
STDERR: Final = 3
LOOK_SECONDS: Final = 0.1


class Patience(Struct, frozen=True, kw_only=True):
    """What a client may leave unread."""

    buffer_bytes: int = 1024 * 1024
    stall_seconds: float = 2.0
    """For how long it may read nothing while its buffer is full; the container waits in this time."""


class _Output:
    """One stream's buffer: implements ports.streams.ByteSource."""

    def __init__(self, *, on_read: Callable[[int], None]) -> None:
        self._on_read = on_read
        self._parts: deque[bytes] = deque()
        self._over: EngineError | None = None
        self._ended = False
        self._waiting: asyncio.Future[None] | None = None

    async def read(self, limit_bytes: int) -> bytes:
        """As ports.streams.ByteSource; ResourceExhausted where this client has been given up."""
        await asyncio.sleep(0)
        while not self._parts:
            if self._over is not None:
                raise self._over
            if self._ended:
                return b""
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._take(limit_bytes)

    def _take(self, limit_bytes: int) -> bytes:
        taken: list[bytes] = []
        room = limit_bytes
        while room and self._parts:
            part = self._parts.popleft()
            if len(part) > room:
                self._parts.appendleft(part[room:])
                part = part[:room]
            taken.append(part)
            room -= len(part)
        self._on_read(limit_bytes - room)
        return b"".join(taken)

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self._wake()

    def end(self, error: EngineError | None = None) -> None:
        """What is there can still be read, unless there is an error to be told."""
        self._ended = True
        if error is not None:
            self._over = error
            self._parts.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Outputs:
    """What arrives from the monitor, sorted into the streams that were asked for. Bounded."""

    def __init__(
        self, connected: socket.socket, wishes: StreamWishes, *, container: tuple[int, int], patience: Patience
    ) -> None:
        """Does not own the connection. `container` is the first process, by number and start time."""
        self._loop = asyncio.get_running_loop()
        self._connected = connected
        self._patience = patience
        self._container = container
        self._limit = patience.buffer_bytes
        self._unread = 0
        self._look: asyncio.TimerHandle | None = None
        self._last_read = 0.0
        self._streams: dict[int, _Output] = {}
        if wishes.stdout:
            self._streams[STDOUT] = _Output(on_read=self._on_read)
        if wishes.stderr and not wishes.terminal:
            self._streams[STDERR] = _Output(on_read=self._on_read)
        self._packets = packets.Packets(connected, on_packet=self._on_packet, on_end=self._end)
        self._packets.resume()

    def stream(self, number: int) -> _Output | None:
        return self._streams.get(number)

    def _on_packet(self, packet: bytes) -> None:
        stream = self._streams.get(packet[0])
        if stream is None or len(packet) == 1:
            return
        stream.feed(packet[1:])
        self._unread += len(packet) - 1
        if self._unread >= self._limit:
            self._packets.pause()
            self._last_read = self._loop.time()
            self._look_later()

    def _on_read(self, count: int) -> None:
        self._unread -= count
        self._last_read = self._loop.time()
        if self._unread < self._limit:
            self._stop_looking()
            self._packets.resume()

    def _look_later(self) -> None:
        self._stop_looking()
        self._look = self._loop.call_later(LOOK_SECONDS, self._on_look)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _on_look(self) -> None:
        """While the container waits for this client."""
        if self._limit == self._patience.buffer_bytes and not pidfd.alive(*self._container):
            # Now the monitor has to see to the exit; the rest of the output is what was in two pipes and a socket.
            self._limit *= 2
            self._packets.resume()
        elif self._loop.time() - self._last_read >= self._patience.stall_seconds:
            log.info("attached client does not read: given up", unread_bytes=self._unread)
            seconds = f"{self._patience.stall_seconds:g} s"
            packets.silence(self._connected)
            self._end(ResourceExhausted(f"attach: nothing was read for {seconds}; the container goes on without"))
        else:
            self._look_later()

    def _end(self, error: EngineError | None = None) -> None:
        self._stop_looking()
        self._packets.close()
        for stream in self._streams.values():
            stream.end(error)

    def close(self) -> None:
        """Idempotent; wakes whoever reads."""
        self._end()
