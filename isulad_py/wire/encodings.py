"""Encode once: the wire form of each record, kept with it, so that list calls only join bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import betterproto

from isulad_py.wire import codec

LIMIT: Final = 10_000
"""More entries than a node has objects; beyond it only those of the latest call are kept."""


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

    def element(self, record: R) -> bytes:
        """The record as an element of the list."""
        entry = self._entries.get(record.id)
        if entry is not None and entry[0] is record:
            return entry[1]
        encoded = codec.element(self._field, bytes(self._translate(record)))
        self._entries[record.id] = (record, encoded)
        return encoded

    def join(self, records: Sequence[R], *, complete: bool) -> bytes:
        """The list's message. `complete` says that these are all there are: entries of other records are dropped."""
        answer = b"".join([self.element(record) for record in records])
        if len(self._entries) > (len(records) if complete else self._limit):
            self._entries = {record.id: self._entries[record.id] for record in records}
        return answer
