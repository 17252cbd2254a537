"""Bytes that have been received and not yet taken, bounded over all streams of a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Budget:
    """What all inboxes of one connection hold together. Whoever fills them waits for room before it receives more."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def add(self, size: int) -> None:
        self._held += size
        if self._held >= self._limit:
            self._room.clear()

    def give_back(self, size: int) -> None:
        """Half of it must be free before more is received: not a stop and a start for each chunk."""
        self._held -= size
        if self._held * 2 <= self._limit:
            self._room.set()

    async def room(self) -> None:
        await self._room.wait()


class Inbox:
    """Implements ports.streams.ByteSource for one reader. What was received before the end can still be read."""

    def __init__(self, budget: Budget, *, on_taken: Callable[[int], None] = lambda size: None) -> None:
        self._budget = budget
        self._on_taken = on_taken
        self._chunks: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self._discarding = False

    @property
    def ended(self) -> bool:
        """No more will come; there may still be something to read."""
        return self._ended

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._budget.add(len(data))
        if self._discarding or self._ended:
            self._taken(len(data))
            return
        self._chunks.append(data)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """No more will come; the reader gets `error` where there is one. The first end counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    def discard(self) -> None:
        """Nobody reads: what is here and what comes is thrown away."""
        self._discarding = True
        while self._chunks:
            self._taken(len(self._chunks.popleft()))

    async def read(self, limit_bytes: int) -> bytes:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunk = self._chunks.popleft()
        if len(chunk) > limit_bytes:
            self._chunks.appendleft(chunk[limit_bytes:])
            chunk = chunk[:limit_bytes]
        self._taken(len(chunk))
        return chunk

    def _taken(self, size: int) -> None:
        self._budget.give_back(size)
        self._on_taken(size)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
