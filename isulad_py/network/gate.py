"""ADD and DEL of many pods at once, GC only while there are none (CNI spec, section 3, "lifecycle & ordering")."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Shared for ADD and DEL, exclusive for GC.

    Who waits for the exclusive side keeps nobody out: one slow pod must not hold up all others. GC comes at a moment of
    rest, or not at all.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._open = asyncio.Event()
        self._open.set()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        while not self._open.is_set():
            await self._open.wait()
        self._inside += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._idle.set()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        while self._inside or not self._open.is_set():
            await self._idle.wait()
            await self._open.wait()
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()
