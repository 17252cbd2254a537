"""One forwarded connection: bytes between a client's stream and a port of a pod, each direction to its own end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import Unavailable
from isulad_py.ports.streams import ByteSink, ByteSource, Connection
from isulad_py.streaming.failures import ClientGone, reason_of
from isulad_py.streaming.limits import COPY_BYTES

Dial = Callable[[int], Awaitable[Connection]]
"""Of a port in the pod. Raises the EngineError that the client is to read."""


async def forward(
    connection: Connection, source: ByteSource, sink: ByteSink, *, abandoned: asyncio.Event | None = None
) -> None:
    """Returns when both directions have ended, or the client has `abandoned` it. Closes the connection. Raises
    ClientGone."""
    try:
        async with asyncio.TaskGroup() as group:
            copies = [
                group.create_task(_copy(source, connection.sink), name="to the pod"),
                group.create_task(_copy(connection.source, sink), name="from the pod"),
            ]
            watcher = group.create_task(_cancel_when(abandoned, copies), name="abandoned")
            await asyncio.wait(copies)
            watcher.cancel()
    except BaseExceptionGroup as errors:
        raise reason_of(errors) from None
    finally:
        await to_the_end(connection.close(), name="close connection")


async def _cancel_when(event: asyncio.Event | None, tasks: list[asyncio.Task[None]]) -> None:
    if event is not None:
        await event.wait()
        for task in tasks:
            task.cancel()


async def _copy(source: ByteSource, sink: ByteSink) -> None:
    """A side that takes no more (a connection that was reset) ends this direction; the other ends by itself."""
    try:
        while data := await source.read(COPY_BYTES):
            await sink.write(data)
        await sink.close()
    except ClientGone:
        raise
    except Unavailable:
        return
