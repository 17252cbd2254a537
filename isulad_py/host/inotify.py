"""Changes of directories, as events on the loop (inotify(7))."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import Callable, Mapping
from typing import Final

from isulad_py.host import libc
from isulad_py.host.failures import translated

_EVENT: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024

_IN_CLOSE_WRITE: Final = 0x8
_IN_MOVED_FROM: Final = 0x40
_IN_MOVED_TO: Final = 0x80
_IN_CREATE: Final = 0x100
_IN_DELETE: Final = 0x200
_IN_DELETE_SELF: Final = 0x400
_IN_MOVE_SELF: Final = 0x800
_IN_Q_OVERFLOW: Final = 0x4000
_IN_IGNORED: Final = 0x8000
_IN_ONLYDIR: Final = 0x01000000

_OF_ENTRIES: Final = _IN_CLOSE_WRITE | _IN_MOVED_FROM | _IN_MOVED_TO | _IN_CREATE | _IN_DELETE
_OF_SELF: Final = _IN_DELETE_SELF | _IN_MOVE_SELF


class DirectoryWatch:
    """Calls `on_change` (on the loop) when something in the watched directories may have changed.

    It only says that a look is due, never at what: lost events (queue overflow) need no other treatment then.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        """Raises ResourceExhausted where the user's number of inotify instances is used up."""
        self._on_change = on_change
        with translated("watch directories"):
            self._fd = libc.inotify_init()
        self._names: dict[int, str] = {}
        """Watch number -> the one name that matters there, or empty for all."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._on_ready)

    def aim(self, targets: Mapping[str, str]) -> None:
        """Watches exactly these directories from now on, each for one name only or, where it is empty, for all.

        To be called again after a change: a path may lead to another directory by then. Raises OSError's translation
        where one cannot be watched.
        """
        names: dict[int, str] = {}
        for path, name in targets.items():
            with translated("watch"):
                names[libc.inotify_add_watch(self._fd, path, _OF_ENTRIES | _OF_SELF | _IN_ONLYDIR)] = name
        former, self._names = self._names, names
        for watch in former.keys() - names.keys():
            with contextlib.suppress(OSError):  # it went away with its directory
                libc.inotify_rm_watch(self._fd, watch)

    def _on_ready(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        offset, matters = 0, False
        while offset < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, offset)
            offset += _EVENT.size
            name = data[offset : offset + length].rstrip(b"\0")
            offset += length
            matters = matters or self._matters(watch, mask, os.fsdecode(name))
        if matters:
            self._on_change()

    def _matters(self, watch: int, mask: int, name: str) -> bool:
        if mask & _IN_Q_OVERFLOW:
            return True
        if watch not in self._names:
            return False
        if mask & (_IN_IGNORED | _OF_SELF):
            return True
        return self._names[watch] in ("", name)

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
