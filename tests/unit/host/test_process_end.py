"""What happens to a program that must not go on: the end that the caller gave takes the place of the usual one."""

from __future__ import annotations

import asyncio
import signal

import pytest

from isulad_py.host import process
from isulad_py.model.errors import DeadlineExceeded


async def test_the_given_end_runs_at_the_deadline() -> None:
    ended: list[int] = []

    async def end(child: process.Child) -> None:
        child.signal(signal.SIGKILL)
        ended.append(await child.wait())

    with pytest.raises(DeadlineExceeded):
        await process.run(process.Command(argv=("sleep", "1000"), timeout_seconds=0.01), end=end)
    assert ended == [-signal.SIGKILL]


async def test_cancelling_twice_still_awaits_the_end() -> None:
    ending = asyncio.Event()
    go_on = asyncio.Event()
    ended: list[int] = []

    async def end(child: process.Child) -> None:
        ending.set()
        await go_on.wait()
        child.signal(signal.SIGKILL)
        ended.append(await child.wait())

    task = asyncio.ensure_future(process.run(process.Command(argv=("sleep", "1000")), end=end))
    await asyncio.sleep(0)
    task.cancel()
    await ending.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [-signal.SIGKILL]
