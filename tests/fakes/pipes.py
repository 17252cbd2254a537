"""Bounded byte pipes in memory, as the kernel's are."""

from __future__ import annotations

import asyncio

from isulad_py.model.errors import EngineError, Unavailable

PIPE_BYTES = 64 * 1024


class FakePipe:
    """Implements ports.streams.ByteSource and ByteSink, one end each; `leave` is the reader's close."""

    def __init__(self, limit_bytes: int = PIPE_BYTES) -> None:
        self._limit = limit_bytes
        self._data = bytearray()
        self._ended = False
        self._left = False
        self._error: EngineError | None = None
        self._changed = asyncio.Event()

    @property
    def unread(self) -> int:
        return len(self._data)

    @property
    def full(self) -> bool:
        return len(self._data) >= self._limit

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        await self._changed.wait()

    async def read(self, limit_bytes: int) -> bytes:
        await asyncio.sleep(0)
        while not self._data:
            if self._error is not None:
                raise self._error
            if self._ended or self._left:
                return b""
            await self.changed()
        data = bytes(self._data[:limit_bytes])
        del self._data[: len(data)]
        self._change()
        return data

    async def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            if self._ended or self._left:
                raise Unavailable("write: nobody reads any more")
            if self.full:
                await self.changed()
                continue
            room = self._limit - len(self._data)
            self._data += left[:room]
            left = left[room:]
            self._change()
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.end()

    def end(self, error: EngineError | None = None) -> None:
        self._ended = True
        if error is not None:
            self._error = error
            self._data.clear()
        self._change()

    def leave(self) -> None:
        self._left = True
        self._data.clear()
        self._change()
