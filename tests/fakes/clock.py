"""Time that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq


class FakeClock:
    """Implements ports.clock.Clock. `advance` wakes the sleepers whose time has come, in order."""

    def __init__(self, now_ns: int = 1_700_000_000_000_000_000) -> None:
        self._now_ns = now_ns
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now_ns(self) -> int:
        self._now_ns += 1
        return self._now_ns

    def monotonic(self) -> float:
        return self._monotonic

    @property
    def sleeping(self) -> int:
        return sum(not waiter.done() for _, _, waiter in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, self._count, waiter))
        await waiter

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now_ns += int(seconds * 1_000_000_000)
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            waiter = heapq.heappop(self._sleepers)[2]
            if not waiter.done():
                waiter.set_result(None)
