from __future__ import annotations

import asyncio

import pytest

from isulad_py.engine.locks import Locks, SingleFlight
from isulad_py.host.tasks import TaskOwner
from isulad_py.model.errors import NotFound


@pytest.fixture
async def tasks():
    failures: list[str] = []
    owner = TaskOwner(on_failure=lambda name, _: failures.append(name))
    yield owner
    await owner.close()
    assert failures == []


async def test_one_key_is_held_by_one_and_other_keys_are_free() -> None:
    locks = Locks()
    order: list[str] = []

    async def hold(key: str, gate: asyncio.Event | None) -> None:
        async with locks.of(key):
            order.append(f"in {key}")
            if gate is not None:
                await gate.wait()
            order.append(f"out {key}")

    gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(hold("a", gate))
        group.create_task(hold("a", None))
        group.create_task(hold("b", None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["in a", "in b", "out b"]
        gate.set()
    assert order[3:] == ["out a", "in a", "out a"]


async def test_locks_are_forgotten_also_after_a_cancelled_wait() -> None:
    locks = Locks()
    async with locks.of("a"):
        waiter = asyncio.get_running_loop().create_task(_take(locks, "a"))
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert locks._locks == {}


async def _take(locks: Locks, key: str) -> None:
    async with locks.of(key):
        pass


class Work:
    def __init__(self) -> None:
        self.started = 0
        self.cancelled = False
        self.gate = asyncio.Event()

    async def run(self) -> int:
        self.started += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return 7


async def test_all_who_ask_share_one_flight(tasks) -> None:
    flights: SingleFlight[int] = SingleFlight(tasks=tasks, name="work")
    work = Work()
    callers = [asyncio.get_running_loop().create_task(flights.run("k", work.run)) for _ in range(5)]
    await asyncio.sleep(0)
    work.gate.set()
    assert await asyncio.gather(*callers) == [7] * 5
    assert work.started == 1
    assert "k" not in flights


async def test_an_error_reaches_every_caller(tasks) -> None:
    flights: SingleFlight[int] = SingleFlight(tasks=tasks, name="work")

    async def fail() -> int:
        await asyncio.sleep(0)
        raise NotFound("away")

    outcomes = await asyncio.gather(flights.run("k", fail), flights.run("k", fail), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["away", "away"]


@pytest.mark.parametrize("abandon", [False, True])
async def test_work_without_callers_goes_on_unless_it_is_to_be_abandoned(tasks, abandon: bool) -> None:
    flights: SingleFlight[int] = SingleFlight(tasks=tasks, name="work", abandon=abandon)
    work = Work()
    first, second = (asyncio.get_running_loop().create_task(flights.run("k", work.run)) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert "k" in flights
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    await asyncio.sleep(0)
    assert work.cancelled is abandon
    work.gate.set()
