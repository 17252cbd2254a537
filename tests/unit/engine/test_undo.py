from __future__ import annotations

import asyncio

import pytest

from isulad_py.engine.undo import Undo
from isulad_py.host.tasks import TaskOwner
from isulad_py.model.errors import HostFailure, NotFound


@pytest.fixture
async def tasks():
    failures: list[str] = []
    owner = TaskOwner(on_failure=lambda name, _: failures.append(name))
    yield owner
    await owner.close()
    assert failures == []


class Ledger:
    def __init__(self) -> None:
        self.done: list[str] = []

    def step(self, name: str, error: BaseException | None = None):
        async def run() -> None:
            self.done.append(name)
            if error is not None:
                raise error

        return run


async def test_success_undoes_nothing(tasks) -> None:
    ledger = Ledger()
    async with Undo(tasks=tasks) as undo:
        undo.push("a", ledger.step("a"))
    assert ledger.done == []


async def test_failure_undoes_newest_first_and_keeps_the_cause(tasks) -> None:
    ledger = Ledger()
    with pytest.raises(HostFailure, match="no network"):
        async with Undo(tasks=tasks) as undo:
            undo.push("a", ledger.step("a"))
            undo.push("b", ledger.step("b"))
            raise HostFailure("no network")
    assert ledger.done == ["b", "a"]


async def test_a_failing_step_does_not_stop_the_others_and_is_told(tasks) -> None:
    ledger = Ledger()
    with pytest.raises(HostFailure) as caught:
        async with Undo(tasks=tasks) as undo:
            undo.push("a", ledger.step("a"))
            undo.push("b", ledger.step("b", NotFound("b is away")))
            undo.push("c", ledger.step("c", ValueError("a bug")))
            raise HostFailure("no network")
    assert ledger.done == ["c", "b", "a"]
    assert caught.value.message == "no network; and while undoing: a bug; b is away"


async def test_cancellation_undoes_to_the_end_though_it_comes_twice(tasks) -> None:
    ledger = Ledger()
    entered, gate = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        entered.set()
        await gate.wait()
        ledger.done.append("slow")

    async def call() -> None:
        async with Undo(tasks=tasks) as undo:
            undo.push("a", ledger.step("a"))
            undo.push("slow", slow)
            await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(call())
    await asyncio.sleep(0)
    task.cancel()
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ledger.done == ["slow", "a"]
