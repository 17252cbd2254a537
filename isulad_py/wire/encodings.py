"""Encode once: the wire form of each record, kept with it, so that list calls only join bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import betterproto

from isulad_py.wire import codec

LIMIT: Final = 10_000
"""More entries than a node has objects; beyond it only those of the latest call are kept."""
SLICE: Final = 16
"""So many messages are made and encoded before the loop has its turn: 3 ms."""
CHUNK_BYTES: Final = 256 * 1024
"""About what one message of a streamed list has: small beside what a client takes, large beside a message's cost."""


Chunks: TypeAlias = AbstractContextManager[AsyncIterator[bytes]]
"""A streamed list, as the table of methods takes it."""


class Record(Protocol):
    """Immutable: a changed object is a new record, so that identity tells whether an encoding still holds."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Record)


class Encodings(Generic[R]):
    """List answers of one kind of record.

    Encoding a container costs 0.1 ms or more, and a kubelet lists all of them every second: here an unchanged one
    costs a dictionary look-up.
    """

    def __init__(self, translate: Callable[[R], betterproto.Message], *, field: int = 1, limit: int = LIMIT) -> None:
        """`field` is the number of the repeated field in the list's message."""
        self._translate = translate
        self._field = field
        self._limit = limit
        self._entries: dict[str, tuple[R, bytes]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def elements(self, records: Sequence[R], *, complete: bool) -> list[bytes]:
        """Each record as an element of the repeated field. `complete` says that these are all there are: entries of
        other records are dropped."""
        found = []
        fresh = 0
        for record in records:
            entry = self._entries.get(record.id)
            if entry is None or entry[0] is not record:
                entry = (record, codec.element(self._field, bytes(self._translate(record))))
                self._entries[record.id] = entry
                fresh += 1
                if fresh % SLICE == 0:
                    await asyncio.sleep(0)
            found.append(entry)
        if len(self._entries) > (len(found) if complete else self._limit):
            self._entries = {entry[0].id: entry for entry in found}
        return [entry[1] for entry in found]

    async def join(self, records: Sequence[R], *, complete: bool) -> bytes:
        """The list's message."""
        return b"".join(await self.elements(records, complete=complete))

    async def chunks(self, records: Sequence[R], *, complete: bool) -> AsyncIterator[bytes]:
        """The same list in several messages, each with the elements that fit; none for an empty one."""
        for chunk in split(await self.elements(records, complete=complete)):
            yield chunk


async def join_fresh(elements: Iterable[bytes], *, slice_: int = SLICE) -> bytes:
    """The message that holds these elements of a repeated field, which are true for this answer only."""
    return b"".join(await gather_fresh(elements, slice_=slice_))


async def gather_fresh(elements: Iterable[bytes], *, slice_: int = SLICE) -> list[bytes]:
    """Elements that are made while they are asked for; after so many of them the loop has its turn."""
    found = []
    for number, element in enumerate(elements, 1):
        found.append(element)
        if number % slice_ == 0:
            await asyncio.sleep(0)
    return found


def split(elements: Iterable[bytes]) -> Iterator[bytes]:
    """Messages of about CHUNK_BYTES; an element is never cut."""
    waiting: list[bytes] = []
    size = 0
    for element in elements:
        waiting.append(element)
        size += len(element)
        if size >= CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
