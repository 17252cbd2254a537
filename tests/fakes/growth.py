"""What trees are told to ask while they grow (host.disk_reserve.Growth)."""

from __future__ import annotations

from collections.abc import Callable


def freely(_used_bytes: int, _inodes: int) -> None:
    """An endless disk, and work that nobody gives up."""


class Tally:
    """Counts; `stop` is raised as soon as so many inodes have been asked for."""

    def __init__(self, at_inodes: int = 1 << 62, stop: Callable[[], Exception] = RuntimeError) -> None:
        self.used_bytes = 0
        self.inodes = 0
        self._at = at_inodes
        self._stop = stop

    def __call__(self, used_bytes: int, inodes: int) -> None:
        self.used_bytes += used_bytes
        self.inodes += inodes
        if self.inodes >= self._at:
            raise self._stop()
