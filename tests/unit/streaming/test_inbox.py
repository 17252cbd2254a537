from __future__ import annotations

import asyncio

import pytest

from isulad_py.streaming.failures import ClientGone
from isulad_py.streaming.inbox import Budget, Inbox


async def test_what_comes_before_the_end_is_read() -> None:
    taken: list[int] = []
    inbox = Inbox(Budget(100), on_taken=taken.append)
    inbox.feed(b"abcdef")
    inbox.feed(b"")
    inbox.feed(b"gh")
    inbox.end()
    inbox.end(ClientGone("too late"))
    assert inbox.ended
    assert [await inbox.read(4), await inbox.read(4), await inbox.read(4)] == [b"abcd", b"ef", b"gh"]
    assert [await inbox.read(4), await inbox.read(4)] == [b"", b""]
    assert taken == [4, 2, 2]


async def test_a_broken_end_comes_after_what_was_received() -> None:
    inbox = Inbox(Budget(100))
    inbox.feed(b"x")
    inbox.end(ClientGone("left"))
    assert await inbox.read(10) == b"x"
    for _ in range(2):
        with pytest.raises(ClientGone):
            await inbox.read(10)


async def test_a_reader_that_waits() -> None:
    inbox = Inbox(Budget(100))
    reading = asyncio.ensure_future(inbox.read(10))
    await asyncio.sleep(0)
    inbox.feed(b"x")
    inbox.feed(b"y")
    assert await reading == b"x"
    cancelled = asyncio.ensure_future(Inbox(Budget(1)).read(1))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await inbox.read(10) == b"y"


async def test_a_discarded_inbox_holds_nothing() -> None:
    budget = Budget(10)
    inbox = Inbox(budget)
    inbox.feed(bytes(20))
    assert not budget.has_room
    inbox.discard()
    inbox.feed(bytes(20))
    assert budget.has_room
    inbox.end()
    assert await inbox.read(1) == b""


async def test_the_budget_is_for_all_together() -> None:
    budget = Budget(100)
    first, second = Inbox(budget), Inbox(budget)
    first.feed(bytes(60))
    assert budget.has_room
    second.feed(bytes(40))
    assert not budget.has_room
    waiting = asyncio.ensure_future(budget.room())
    await first.read(40)
    assert not budget.has_room, "half of it has to be free"
    await first.read(40)
    await waiting
    assert budget.has_room
