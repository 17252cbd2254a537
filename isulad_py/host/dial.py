"""TCP connections to localhost in another network namespace, without a process or thread that stays there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from functools import partial
from typing import Final

from isulad_py.host import blocking
from isulad_py.host.descriptors import Sink, Source
from isulad_py.host.failures import EXHAUSTED, translate
from isulad_py.host.namespaces import call_in_netns
from isulad_py.model.errors import InvalidInput, Unavailable

LOCALHOST: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
CONNECT_SECONDS: Final = 5.0
"""For each address. Loopback answers at once, unless a packet filter swallows it or the listener's queue is full."""


class TcpConnection:
    """Implements ports.streams.Connection."""

    def __init__(self, connected: socket.socket) -> None:
        """Owns the socket."""
        with contextlib.ExitStack() as undo:
            undo.callback(connected.close)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.source = Source(os.dup(connected.fileno()))
            undo.callback(self.source.close)
            self.sink = Sink(os.dup(connected.fileno()), finish=partial(connected.shutdown, socket.SHUT_WR))
            undo.callback(self.sink.abandon)
            self._undo = undo.pop_all()

    async def close(self) -> None:
        """Idempotent."""
        self._undo.close()


async def dial_localhost(netns_path: str, port: int) -> TcpConnection:
    """Connects to the port over IPv4, else over IPv6. An empty path is the host's namespace.

    Raises NotFound where the namespace is gone, Unavailable naming the port where nobody listens or answers.
    """
    if not 0 < port <= 0xFFFF:
        raise InvalidInput(f"port {port}: out of range")
    with contextlib.ExitStack() as unused:
        reasons: list[str] = []
        for (_, host), made in zip(LOCALHOST, await _sockets(netns_path, unused), strict=True):
            if made is None:
                continue
            try:
                await _connect(made, host, port)
                connected = made.dup()  # the original is closed with the rest
            except OSError as error:
                reasons.append(_reason(error))
            else:
                return TcpConnection(connected)
    raise Unavailable(f"port {port}: {reasons[0] if reasons else 'no address family'}")


async def _sockets(netns_path: str, owner: contextlib.ExitStack) -> list[socket.socket | None]:
    """One for each address: a socket belongs to the namespace of the thread that has made it, for ever."""
    made: list[socket.socket | None] = []

    def inside() -> None:
        for family, _ in LOCALHOST:
            try:
                opened = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            except OSError as error:
                if error.errno in EXHAUSTED:
                    raise translate("make a socket", error) from error
                made.append(None)  # no IPv6 here
            else:
                owner.callback(opened.close)
                made.append(opened)

    # To its end: what it makes while the caller is cancelled has an owner, too.
    await blocking.run_to_end(call_in_netns, netns_path, inside)
    return made


async def _connect(made: socket.socket, host: str, port: int) -> None:
    async with asyncio.timeout(CONNECT_SECONDS):
        await asyncio.get_running_loop().sock_connect(made, (host, port))
    # Nobody listened, and the kernel picked that very port for our end: the socket talks to itself (TCP's simultaneous
    # open).
    if made.getsockname()[:2] == made.getpeername()[:2]:
        raise ConnectionRefusedError("connection refused")


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError) and not error.errno:
        return f"no answer within {CONNECT_SECONDS:g} s"
    return os.strerror(error.errno).lower() if error.errno else str(error)  # asyncio's own words are longer
