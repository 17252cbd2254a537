"""Encode once: the wire form of each record, kept with it, so that list calls only join bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import betterproto

from isulad_py.wire import codec

LIMIT: Final = 10_000
"""More entries than a node has objects; beyond it only those of the latest call are kept."""
SLICE: Final = 16
"""So many messages are made and encoded before the loop has its turn: 3 ms."""


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

    async def join(self, records: Sequence[R], *, complete: bool) -> bytes:
        """The list's message. `complete` says that these are all there are: entries of other records are dropped."""
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
        return b"".join([entry[1] for entry in found])


async def join_fresh(messages: Iterable[betterproto.Message], *, field: int = 1) -> bytes:
    """The message whose repeated field `field` holds `messages`, which are true for this answer only."""
    parts = []
    for number, message in enumerate(messages, 1):
        parts.append(codec.element(field, bytes(message)))
        if number % SLICE == 0:
            await asyncio.sleep(0)
    return b"".join(parts)
