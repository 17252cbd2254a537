from __future__ import annotations

import asyncio

import pytest

from isulad_py.host.tasks import TaskOwner, to_the_end


async def test_the_result_comes_back() -> None:
    async def work() -> int:
        return 7

    assert await to_the_end(work(), name="w") == 7


async def test_the_error_comes_back() -> None:
    async def work() -> None:
        raise OSError("x")

    with pytest.raises(OSError, match="x"):
        await to_the_end(work(), name="w")


@pytest.mark.parametrize("fails", [False, True])
async def test_work_is_not_cut_short_by_repeated_cancellation(fails: bool) -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        ended.set()
        if fails:
            raise OSError("told by nobody but the cancellation")

    task = asyncio.ensure_future(to_the_end(work(), name="w"))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_kind_of_work_can_be_waited_for() -> None:
    owner = TaskOwner(on_failure=lambda *_: None)
    gate, ended = asyncio.Event(), []

    async def undo() -> None:
        await gate.wait()
        ended.append("undo")

    owner.start(undo(), name="undo:1")
    owner.start(asyncio.Event().wait(), name="other")
    waiting = asyncio.get_running_loop().create_task(owner.wait_for({"undo"}))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    await waiting
    assert ended == ["undo"]
    await owner.close()
