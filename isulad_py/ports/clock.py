"""Time, so that tests own it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Nanoseconds since 1970, never the same twice in one process (CRI clients order by them)."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; unaffected by changes of the wall clock."""
        ...

    async def sleep(self, seconds: float) -> None: ...
