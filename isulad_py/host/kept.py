"""Connections that must stay open until a process has ended, because of what it would make of their close."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from isulad_py.host import pidfd


class KeptOpen:
    """Connections by the process that they are kept for, which is named by its number and start time."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], list[socket.socket]] = {}
        self._watches: dict[tuple[int, int], int] = {}

    def count(self, pid: int, started: int) -> int:
        return len(self._kept.get((pid, started), ()))

    def add(self, connected: socket.socket, pid: int, started: int) -> None:
        """Takes the connection over; closes it at once where the process has ended."""
        key = (pid, started)
        if key not in self._watches and pid > 0:
            with contextlib.suppress(OSError):  # without descriptors to spare, they stay for as long as we do
                fd = os.pidfd_open(pid)
                self._watches[key] = fd
                asyncio.get_running_loop().add_reader(fd, self._drop, key)
        self._kept.setdefault(key, []).append(connected)
        # Behind the opening: had the number been given to another process by then, the time would differ.
        if not pidfd.alive(pid, started):
            self._drop(key)

    def _drop(self, key: tuple[int, int]) -> None:
        fd = self._watches.pop(key, -1)
        if fd >= 0:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        for connected in self._kept.pop(key, ()):
            connected.close()

    def close(self) -> None:
        for key in list(self._kept):
            self._drop(key)
