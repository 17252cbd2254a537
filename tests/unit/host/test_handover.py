"""Bytes from the loop to a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from isulad_py.host.handover import Handover
from isulad_py.model.errors import Aborted


async def test_everything_arrives_in_order_through_a_small_bound() -> None:
    handover = Handover(100)
    loop = asyncio.get_running_loop()
    taken = loop.run_in_executor(None, lambda: b"".join(handover))
    sent = [bytes([n % 256]) * (n % 70) for n in range(500)]
    for chunk in sent:
        assert await handover.put(chunk)
    handover.end()
    assert await taken == b"".join(sent)


async def test_the_producer_waits_for_room_and_a_long_chunk_goes_alone() -> None:
    handover = Handover(100)
    assert await handover.put(bytes(500))
    waiting = asyncio.ensure_future(handover.put(bytes(10)))
    await asyncio.sleep(0)
    assert not waiting.done()
    chunks = iter(handover)
    assert len(next(chunks)) == 500
    assert await waiting
    handover.end()
    assert [len(chunk) for chunk in chunks] == [10]


async def test_chunks_that_only_fit_alone_take_turns() -> None:
    handover = Handover(100)
    taken = asyncio.get_running_loop().run_in_executor(None, lambda: b"".join(handover))
    for _ in range(200):
        await handover.put(bytes(20))
        await handover.put(bytes(90))
    handover.end()
    assert len(await taken) == 22_000


async def test_an_abort_wakes_the_waiting_consumer() -> None:
    handover = Handover(100)
    entered = threading.Event()

    def consume() -> None:
        entered.set()
        for _ in handover:
            pass

    consumer = asyncio.get_running_loop().run_in_executor(None, consume)
    await asyncio.to_thread(entered.wait)
    handover.abort()
    with pytest.raises(Aborted):
        await consumer


async def test_a_consumer_that_gives_up_frees_the_producer() -> None:
    handover = Handover(100)
    await handover.put(bytes(100))
    waiting = asyncio.ensure_future(handover.put(bytes(100)))
    await asyncio.sleep(0)
    await asyncio.to_thread(handover.give_up)
    assert not await waiting
    assert not await handover.put(b"more")


async def test_a_cancelled_producer_can_go_on() -> None:
    handover = Handover(10)
    await handover.put(bytes(10))
    waiting = asyncio.ensure_future(handover.put(bytes(10)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    chunks = iter(handover)
    next(chunks)
    assert await handover.put(b"x")
    handover.end()
    assert next(chunks) == b"x"


async def test_a_consumer_at_work_can_ask_whether_it_still_is_wanted() -> None:
    handover = Handover(100)
    handover.check()
    handover.end()
    handover.check()
    handover.abort()
    with pytest.raises(Aborted):
        handover.check()
