"""Work that several wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from isulad_py.host.tasks import TaskOwner
from isulad_py.images.flights import Flights
from isulad_py.model.errors import NotFound, Unavailable


class Work:
    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.gate = asyncio.Event()
        self.errors: list[Exception] = []

    async def run(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.errors:
            raise self.errors.pop(0)
        return number


@pytest.fixture
async def owner() -> AsyncIterator[TaskOwner]:
    died: list[BaseException] = []
    owner = TaskOwner(on_failure=lambda _, error: died.append(error))
    yield owner
    await owner.close()
    assert not died


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_it_is_done_once_for_all(owner: TaskOwner) -> None:
    flights: Flights[int] = Flights(owner)
    work = Work()
    waiting = [asyncio.ensure_future(flights.run("key", work.run)) for _ in range(3)]
    await turns()
    work.gate.set()
    assert await asyncio.gather(*waiting) == [1, 1, 1]
    assert await flights.run("key", work.run) == 2


async def test_it_goes_on_while_somebody_waits(owner: TaskOwner) -> None:
    flights: Flights[int] = Flights(owner)
    work = Work()
    waiting = [asyncio.ensure_future(flights.run("key", work.run)) for _ in range(2)]
    await turns()
    waiting[0].cancel()
    await turns()
    assert work.cancelled == 0
    waiting[1].cancel()
    await turns()
    assert work.cancelled == 1
    again = asyncio.ensure_future(flights.run("key", work.run))
    work.gate.set()
    assert await again == 2


async def test_anothers_failure_is_not_ours(owner: TaskOwner) -> None:
    flights: Flights[int] = Flights(owner)
    work = Work()
    work.errors = [NotFound("his mirror has it not")]
    waiting = [asyncio.ensure_future(flights.run("key", work.run)) for _ in range(3)]
    await turns()
    work.gate.set()
    with pytest.raises(NotFound):
        await waiting[0]
    assert await asyncio.gather(*waiting[1:]) == [2, 2]


async def test_our_own_failure_is(owner: TaskOwner) -> None:
    flights: Flights[int] = Flights(owner)
    work = Work()
    work.errors = [NotFound("one"), NotFound("two")]
    work.gate.set()
    outcomes = await asyncio.gather(*(flights.run("key", work.run) for _ in range(2)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["one", "two"]


async def test_at_the_end_of_all(owner: TaskOwner) -> None:
    flights: Flights[int] = Flights(owner)
    waiting = asyncio.ensure_future(flights.run("key", Work().run))
    await turns()
    await owner.close()
    with pytest.raises(Unavailable):
        await waiting
