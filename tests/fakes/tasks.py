"""Background tasks that a test can wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TestTasks:
    """Implements ports.tasks.Tasks. `settle` waits for the end of all and raises what died; `close` cancels."""

    __test__ = False

    def __init__(self) -> None:
        self.running: set[asyncio.Task[Any]] = set()
        self._errors: list[BaseException] = []

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.running.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self.running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    async def settle(self) -> None:
        while self.running:
            await asyncio.wait(self.running)
            await asyncio.sleep(0)  # the callbacks
        if self._errors:
            raise self._errors[0]

    async def close(self) -> None:
        for task in self.running:
            task.cancel()
        await self.settle()
