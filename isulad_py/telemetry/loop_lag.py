"""How late the event loop is: the one number that tells whether something blocks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

INTERVAL_SECONDS: Final = 0.025
"""A block is seen in full but for at most this much, and costs 40 wake-ups a second (0.2 % of a core)."""


class LoopLag:
    """Sets a timer and measures how much later than due it fires."""

    def __init__(self, observe: Callable[[float], None], *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._observe = observe
        self._interval = interval_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        self._arm(asyncio.get_running_loop())

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        # Not the loop's own clock: uvloop's has milliseconds, and stands still while callbacks run.
        self._due = monotonic() + self._interval
        self._timer = loop.call_later(self._interval, self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._observe(max(0.0, monotonic() - self._due))
        self._arm(loop)

    def stop(self) -> None:
        """Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
