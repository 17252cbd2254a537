"""How far a pull is: added up, and told to whoever watches, the latest word only."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Generic, TypeVar

import structlog
from msgspec import Struct

from isulad_py.model.image import ImageRecord
from isulad_py.ports.clock import Clock
from isulad_py.ports.images import PullProgress

log = structlog.get_logger(__name__)

T = TypeVar("T")
TELL_SECONDS: Final = 0.1
"""Watchers hear of a pull as often as this, and of each new step: people read it."""
LOG_SECONDS: Final = 10.0


class PullState(Struct, frozen=True, kw_only=True):
    step: str = ""
    """As in ports.images.PullProgress."""
    layers: tuple[PullProgress, ...] = ()
    """Those that have to be fetched, in the order in which they were begun."""
    image: ImageRecord | None = None
    """At the end."""


Watch = Callable[[PullState], None]


class Meter:
    """One pull's, for all who wait for it. A pull that takes long says so in the log."""

    def __init__(self, *, image: str, clock: Clock) -> None:
        self._image = image
        self._clock = clock
        self._step = ""
        self._layers: dict[str, PullProgress] = {}
        self._watches: list[Watch] = []
        self._told_at = self._logged_at = clock.monotonic()
        self.users = 0

    def __call__(self, progress: PullProgress) -> None:
        """Hears the source."""
        now, new = self._clock.monotonic(), progress.step != self._step
        self._step = progress.step
        if progress.digest:
            self._layers[progress.digest] = progress
        if now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            total = sum(layer.total_bytes for layer in self._layers.values())
            log.info("pull under way", image=self._image, step=self._step, bytes=self.total_bytes, of=total)
        if new or now - self._told_at >= TELL_SECONDS:
            self._told_at = now
            for watch in self._watches:
                watch(self.state)

    @property
    def state(self) -> PullState:
        return PullState(step=self._step, layers=tuple(self._layers.values()))

    @property
    def total_bytes(self) -> int:
        """Fetched so far."""
        return sum(layer.done_bytes for layer in self._layers.values())

    @contextlib.contextmanager
    def heard_by(self, watch: Watch | None) -> Iterator[None]:
        """Who comes late is told at once what there is."""
        if watch is None:
            yield
            return
        self._watches.append(watch)
        try:
            if self._step:
                watch(self.state)
            yield
        finally:
            self._watches.remove(watch)


class Latest(Generic[T]):
    """Between one who tells and one who may be slow: what is put takes the place of what was not taken."""

    def __init__(self) -> None:
        self._value: T | None = None
        self._ended = False
        self._news = asyncio.Event()

    def put(self, value: T) -> None:
        self._value = value
        self._news.set()

    def end(self) -> None:
        """What was put last can still be had."""
        self._ended = True
        self._news.set()

    async def values(self) -> AsyncIterator[T]:
        """For one reader."""
        while True:
            await self._news.wait()
            self._news.clear()
            value, self._value = self._value, None
            if value is not None:
                yield value
            if self._ended and self._value is None:
                return
