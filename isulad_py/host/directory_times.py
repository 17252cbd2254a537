"""Which time each directory of a tree gets in the end: every entry made in one changes its time. Synchronous."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from typing import Final

MEMORY_BYTES: Final = 1024 * 1024
"""What is kept in memory; the times of more directories go into a nameless file."""
_RECORD: Final = struct.Struct("<IqI")
_SECOND: Final = 1_000_000_000


class DirectoryTimes:
    """Raises OSError when the disk is full."""

    def __init__(self, folder: str) -> None:
        """`folder` has room for the file."""
        self._spool = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES, dir=folder)  # noqa: SIM115 -- see `close`

    def add(self, path: bytes, mtime_ns: int) -> None:
        """The last one of a path counts."""
        self._spool.write(_RECORD.pack(len(path), *divmod(mtime_ns, _SECOND)) + path)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """In the order in which they came. Nothing is added afterwards."""
        self._spool.seek(0)
        while head := self._spool.read(_RECORD.size):
            length, seconds, rest = _RECORD.unpack(head)
            yield self._spool.read(length), seconds * _SECOND + rest

    def close(self) -> None:
        """Idempotent."""
        self._spool.close()
