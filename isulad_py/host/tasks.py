"""Owner of background tasks, and work that is not cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TaskOwner:
    """Implements ports.tasks.Tasks: keeps every task, reports the ones that die, ends all at the close."""

    def __init__(self, *, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        if self._closing:
            work.close()
            raise RuntimeError(f"task {name} started while stopping")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(task.get_name(), error)

    async def wait_for(self, kinds: Collection[str]) -> None:
        """Waits until no task is under way whose name, up to the first colon, is one of these."""
        while tasks := [task for task in self._tasks if task.get_name().partition(":")[0] in kinds]:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cancels and awaits every task."""
        self._closing = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_the_end(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Awaits `work` to its end, however often the caller is cancelled meanwhile; only then the cancellation goes on.

    For undoing, which must have a deadline of its own.
    """
    task, cancelled = await settled(work, name=name)
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen: the cancellation comes first
        raise cancelled
    return task.result()


async def settled(work: Coroutine[Any, Any, T], *, name: str) -> tuple[asyncio.Task[T], asyncio.CancelledError | None]:
    """The work, ended, and the cancellation of the caller that came meanwhile: for the caller to raise."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return task, cancelled
