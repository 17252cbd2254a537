"""The real clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Implements ports.clock.Clock."""

    def __init__(self) -> None:
        self._last_ns = 0

    def now_ns(self) -> int:
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return self._last_ns

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
