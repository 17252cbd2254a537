from __future__ import annotations

import asyncio

import pytest

from isulad_py.model.errors import Unavailable
from isulad_py.streaming.failures import ClientGone
from isulad_py.streaming.forward import forward
from isulad_py.streaming.inbox import Budget, Inbox
from tests.fakes.scripted_streams import Pipe, ScriptedConnection


class Ends:
    """A client's stream."""

    def __init__(self) -> None:
        self.inbox = Inbox(Budget(1_000_000))
        self.pipe = Pipe()


async def test_each_direction_ends_by_itself() -> None:
    client, connection = Ends(), ScriptedConnection()
    working = asyncio.ensure_future(forward(connection, client.inbox, client.pipe))
    client.inbox.feed(b"question")
    client.inbox.end()
    assert await connection.peer_source.read(100) == b"question"
    assert await connection.peer_source.read(100) == b""
    await connection.peer_sink.write(b"answer")
    await connection.peer_sink.close()
    await working
    assert await client.pipe.read(100) == b"answer"
    assert client.pipe.ended
    assert connection.closed.is_set()


async def test_a_pod_that_resets_ends_its_direction_alone() -> None:
    client, connection = Ends(), ScriptedConnection()
    await connection.peer_source.break_()
    working = asyncio.ensure_future(forward(connection, client.inbox, client.pipe))
    client.inbox.feed(b"lost")
    await connection.peer_sink.write(b"last words")
    await connection.peer_sink.close()
    await working
    assert await client.pipe.read(100) == b"last words"


async def test_a_client_that_goes() -> None:
    client, connection = Ends(), ScriptedConnection()
    working = asyncio.ensure_future(forward(connection, client.inbox, client.pipe))
    client.inbox.end(ClientGone("left"))
    with pytest.raises(ClientGone):
        await working
    assert connection.closed.is_set()


async def test_a_client_that_abandons() -> None:
    client, connection, abandoned = Ends(), ScriptedConnection(), asyncio.Event()
    working = asyncio.ensure_future(forward(connection, client.inbox, client.pipe, abandoned=abandoned))
    await asyncio.sleep(0)
    abandoned.set()
    await working
    assert connection.closed.is_set()


async def test_a_sink_that_takes_no_more() -> None:
    client, connection = Ends(), ScriptedConnection()
    client.inbox.end()
    await client.pipe.break_()
    await connection.peer_sink.write(b"x")
    await forward(connection, client.inbox, client.pipe)
    with pytest.raises(Unavailable):
        await connection.sink.write(b"x")
