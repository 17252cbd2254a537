"""Part of a file system stays free while several threads fill it, each with a tree of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

from isulad_py.host.failures import translated
from isulad_py.model.errors import ResourceExhausted

LOOK_BYTES: Final = 8 * 1024 * 1024
LOOK_INODES: Final = 1024
"""The file system is looked at each time all of them together have taken so much. Near the reserve more often."""

Growth = Callable[[int, int], None]
"""Told how many bytes and inodes a tree is about to take, from its thread. Raises to stop the work."""


class DiskReserve:
    """One for all who fill the same file system. Thread-safe."""

    def __init__(self, path: str, *, keep_bytes: int, keep_inodes: int) -> None:
        self._path = path
        self._keep_bytes = keep_bytes
        self._keep_inodes = keep_inodes
        self._lock = threading.Lock()
        self._bytes = 0
        self._inodes = 0
        """What may still be taken without a look."""

    def take(self, used_bytes: int, inodes: int) -> None:
        """Before so much is written. ResourceExhausted where it would go into the reserve."""
        with self._lock:
            self._bytes -= used_bytes
            self._inodes -= inodes
            if self._bytes < 0 or self._inodes < 0:
                self._look(used_bytes, inodes)

    def check(self) -> None:
        """Looks whatever was found last: others fill the disk too. Errors as `take`."""
        with self._lock:
            self._look(0, 0)

    def _look(self, used_bytes: int, inodes: int) -> None:
        self._bytes = self._inodes = 0
        with translated("look at the disk:"):
            state = os.statvfs(self._path)
        left_bytes = state.f_bavail * state.f_frsize - self._keep_bytes - used_bytes
        if left_bytes < 0:
            raise ResourceExhausted(
                f"{self._path}: the disk is full: less than {self._keep_bytes >> 20} MiB would be free"
            )
        # Some file systems (btrfs) make inodes as they need them, and tell none at all.
        left_inodes = state.f_favail - self._keep_inodes - inodes if state.f_files else LOOK_INODES
        if left_inodes < 0:
            raise ResourceExhausted(
                f"{self._path}: the disk is full: less than {self._keep_inodes} inodes would be free"
            )
        self._bytes = min(left_bytes, LOOK_BYTES)
        self._inodes = min(left_inodes, LOOK_INODES)
