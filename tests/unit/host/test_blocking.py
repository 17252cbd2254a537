from __future__ import annotations

import asyncio
import threading

import pytest

from isulad_py.host import blocking


async def test_work_runs_in_a_thread_of_its_own() -> None:
    assert await blocking.run(threading.get_ident) != threading.get_ident()
    assert await blocking.run_to_end(lambda: 7) == 7


async def test_an_error_is_the_callers() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await blocking.run_to_end(fail)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_caller_waits_for_the_end(fails: bool) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()
        if fails:
            raise KeyError("x")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(blocking.run_to_end(work), name="work")
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
    assert ended.is_set()
    assert task.cancelled()


async def test_paths_that_hang_hold_up_nothing_else() -> None:
    gate = threading.Event()
    hanging = [asyncio.ensure_future(blocking.run_apart(gate.wait)) for _ in range(40)]
    try:
        await asyncio.sleep(0)
        assert await blocking.run(lambda: 7) == 7
    finally:
        gate.set()
        await asyncio.gather(*hanging)
