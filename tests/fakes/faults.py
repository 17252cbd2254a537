"""How the fakes are told to fail or to wait, the same for all of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Faults:
    """`fail[step]` makes every call of that step raise until it is taken away; `fail_once(step, error)` the next one;
    `hold(step)` makes calls wait until the returned event is set. `calls` counts what was begun, by step."""

    def __init__(self) -> None:
        self.fail: dict[str, BaseException] = {}
        self.calls: dict[str, int] = defaultdict(int)
        self._once: dict[str, list[BaseException]] = defaultdict(list)
        self._held: dict[str, asyncio.Event] = {}
        self._entered: dict[str, asyncio.Event] = {}

    def fail_once(self, step: str, error: BaseException) -> None:
        self._once[step].append(error)

    def hold(self, step: str) -> asyncio.Event:
        self._entered[step] = asyncio.Event()
        self._held[step] = asyncio.Event()
        return self._held[step]

    async def wait_entered(self, step: str) -> None:
        """Until a call waits at a step that is held."""
        await self._entered[step].wait()

    async def at(self, step: str) -> None:
        """Called by a fake at the beginning of each step."""
        self.calls[step] += 1
        if step in self._held:
            self._entered[step].set()
            await self._held[step].wait()
        if self._once[step]:
            raise self._once[step].pop(0)
        if step in self.fail:
            raise self.fail[step]
