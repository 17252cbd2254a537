"""Which layers something is mounted on: those are never removed, whatever the records of images say."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from isulad_py.host import files
from isulad_py.model.errors import EngineError
from isulad_py.model.ids import ChainId

_NOTE: Final = "layers.json"
_NOTE_LIMIT: Final = 1024 * 1024


class Loans:
    """By borrower: a container's root file system, a view."""

    def __init__(self) -> None:
        self._lent: dict[str, frozenset[ChainId]] = {}

    def lend(self, borrower: str, chain_ids: Collection[ChainId]) -> None:
        self._lent[borrower] = frozenset(chain_ids)

    def take_back(self, borrower: str) -> None:
        """Idempotent."""
        self._lent.pop(borrower, None)

    def lent(self) -> frozenset[ChainId]:
        return frozenset().union(*self._lent.values())


def write_note(folder: str, chain_ids: tuple[ChainId, ...]) -> None:
    """Tells the next daemon what is mounted in `folder`."""
    files.write_atomic(f"{folder}/{_NOTE}", msgspec.json.encode(chain_ids), mode=0o600)


def read_note(folder: str) -> tuple[ChainId, ...] | None:
    """None where there is none that can be read."""
    try:
        data = files.read_limited(f"{folder}/{_NOTE}", _NOTE_LIMIT)
        return tuple(msgspec.json.decode(data, type=list[ChainId]))
    except (EngineError, msgspec.DecodeError, UnicodeDecodeError):
        return None
