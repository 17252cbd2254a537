"""The gRPC server: connections in, calls to whoever answers them, and an orderly end."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import structlog

from isulad_py.ports.tasks import Tasks
from isulad_py.wire.call import Ending
from isulad_py.wire.connection import Answering, Calls, ClientConnection

log = structlog.get_logger(__name__)

CONNECTIONS_LIMIT: Final = 512
UNDO_SECONDS: Final = 30.0
"""For calls that were cancelled at the end, to undo what they began."""


class Server:
    """Serves every listener that it is given, until it is stopped."""

    def __init__(self, *, answer: Answering, tasks: Tasks) -> None:
        self._answer = answer
        self._tasks = tasks
        self._servers: list[asyncio.AbstractServer] = []
        self._connections: set[ClientConnection] = set()

    async def start(self, listener: socket.socket) -> None:
        """`listener` is bound and listening; it is the server's from here on."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._connect, sock=listener))

    def _connect(self) -> ClientConnection:
        welcome = len(self._connections) < CONNECTIONS_LIMIT
        if not welcome:
            log.warning("connection refused: there are too many", limit=CONNECTIONS_LIMIT)
        calls = Calls(answer=self._answer, tasks=self._tasks)
        connection = ClientConnection(calls=calls, on_end=self._connections.discard, welcome=welcome)
        self._connections.add(connection)
        return connection

    async def stop(self, grace_seconds: float) -> None:
        """Takes no new calls, gives those under way `grace_seconds`, cancels what is left and closes all connections.

        Streams that end only with their client are ended at once. Clients are told UNAVAILABLE and may try again.
        """
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.go_away()
        self._cancel(endless_only=True)
        await self._wait(grace_seconds)
        self._cancel(endless_only=False)
        await self._wait(UNDO_SECONDS)
        for connection in list(self._connections):
            connection.close()

    def _cancel(self, *, endless_only: bool) -> None:
        for connection in self._connections:
            for call, _ in list(connection.calls.running.values()):
                if call.endless or not endless_only:
                    call.cancel(Ending.STOPPING)

    async def _wait(self, seconds: float) -> None:
        tasks = [task for c in self._connections for _, task in c.calls.running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
