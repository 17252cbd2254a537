"""Bytes from the event loop to a thread, with a bound: a slow disk slows the socket down instead of filling memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Final

from isulad_py.model.errors import Aborted

_GIVEN_UP: Final = "the transfer was given up"


class Handover:
    """One producer on the loop, one consumer in a thread that iterates over it.

    The consumer's end for whatever reason must be told with `give_up`, or the producer waits for ever.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._chunks: list[bytes] = []
        self._held_bytes = 0
        self._ended = False
        self._aborted = False
        self._room: asyncio.Future[None] | None = None

    async def put(self, chunk: bytes) -> bool:
        """Waits for room; a chunk longer than the limit goes alone. False when the consumer has given up."""
        if self._held_bytes and self._held_bytes + len(chunk) > self._limit:
            await self._wait_room(len(chunk))
        with self._changed:
            if self._aborted:
                return False
            self._chunks.append(chunk)
            self._held_bytes += len(chunk)
            self._changed.notify()
        return True

    async def _wait_room(self, size: int) -> None:
        while True:
            with self._changed:
                if self._aborted or not self._held_bytes or self._held_bytes + size <= self._limit:
                    return
                self._room = self._loop.create_future()
            await self._room

    def end(self) -> None:
        """Nothing more comes: the consumer's iteration ends when it has taken all."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def abort(self) -> None:
        """The consumer's iteration raises Aborted, now. Idempotent."""
        with self._changed:
            self._aborted = True
            self._chunks.clear()
            self._held_bytes = 0
            self._changed.notify()
        self._signal_room()

    def check(self) -> None:
        """By the consumer, while it works on what it has taken: raises Aborted after `abort`."""
        if self._aborted:
            raise Aborted(_GIVEN_UP)

    def give_up(self) -> None:
        """By the consumer, from its thread: it takes no more. Idempotent."""
        with self._changed:
            self._aborted = True
            self._chunks.clear()
            self._held_bytes = 0
            waiting = self._room is not None
        if waiting:
            self._loop.call_soon_threadsafe(self._signal_room)

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := self._take()) is not None:
            yield chunk

    def _take(self) -> bytes | None:
        with self._changed:
            while not (self._chunks or self._ended or self._aborted):
                self._changed.wait()
            if self._aborted:
                raise Aborted(_GIVEN_UP)
            if not self._chunks:
                return None
            # All at once: each turn costs both sides a change of threads.
            chunks = self._chunks
            self._chunks = []
            self._held_bytes = 0
            waiting = self._room is not None
        if waiting:
            self._loop.call_soon_threadsafe(self._signal_room)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _signal_room(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
