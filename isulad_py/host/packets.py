"""Local sockets that keep packets apart (unix(7), SOCK_SEQPACKET), on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from isulad_py.host.descriptors import Sink
from isulad_py.host.failures import translate, translated
from isulad_py.model.errors import FailedPrecondition, Unavailable

PACKET_LIMIT: Final = 64 * 1024
BATCH: Final = 16
"""Packets taken in one turn of the loop."""
TRIES: Final = 500
TRY_AGAIN_SECONDS: Final = 0.01
_NOBODY: Final = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR, errno.ENXIO})


async def connect(directory: str, name: str, *, sleep: Callable[[float], Awaitable[None]]) -> socket.socket:
    """FailedPrecondition where nobody listens, Unavailable where whoever does takes no connections."""
    with contextlib.ExitStack() as undo:
        try:
            directory_fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise FailedPrecondition(f"connect to {name}: there is no {directory}") from error
        undo.callback(os.close, directory_fd)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        with contextlib.ExitStack() as failed:
            failed.callback(made.close)
            for _ in range(TRIES):
                if _connected(made, f"/proc/self/fd/{directory_fd}/{name}"):
                    failed.pop_all()
                    return made
                await sleep(TRY_AGAIN_SECONDS)
    raise Unavailable(f"connect to {name}: whoever listens is busy")


def _connected(made: socket.socket, path: str) -> bool:
    """False where its queue of connections is full. The path may be longer than a socket's name, hence /proc."""
    try:
        made.connect(path)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NOBODY:
            raise FailedPrecondition("connect: nobody listens") from error
        raise translate("connect", error) from error
    return True


class Packets:
    """The receiving side: calls `on_packet` for each packet, and `on_end` once when no more can come, unless it has
    been closed or silenced before. Does not own the socket."""

    def __init__(
        self, connected: socket.socket, *, on_packet: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> None:
        self._socket = connected
        self._on_packet = on_packet
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._reading = False
        self._ended = False

    def resume(self) -> None:
        """Idempotent, as `pause` is."""
        if not self._reading and not self._ended:
            self._reading = True
            self._loop.add_reader(self._socket.fileno(), self._on_ready)

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._socket.fileno())

    def close(self) -> None:
        """No more calls. Idempotent."""
        self.pause()
        self._ended = True

    def _on_ready(self) -> None:
        for _ in range(BATCH):
            if not self._reading:
                return
            try:
                packet = self._socket.recv(PACKET_LIMIT)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self.close()
                self._on_end()
                return
            self._on_packet(packet)


def silence(connected: socket.socket) -> None:
    """The far end cannot send any more, and is told so as soon as it tries; to it, this is not our end of output."""
    with translated("silence a connection"):
        connected.shutdown(socket.SHUT_RD)


class PacketSink(Sink):
    """Sends in packets of a limited size; its close is a half-close. Does not own the socket."""

    def __init__(self, connected: socket.socket, *, packet_bytes: int) -> None:
        super().__init__(os.dup(connected.fileno()), finish=lambda: connected.shutdown(socket.SHUT_WR))
        self._packet_bytes = packet_bytes

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), self._packet_bytes):
            await super().write(data[at : at + self._packet_bytes])
