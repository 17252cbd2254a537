"""What a service manager wants to know (sd_notify(3)) and gives (sd_listen_fds(3)), without its library."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

_FIRST_FD: Final = 3
"""SD_LISTEN_FDS_START."""


class Notifier:
    """Tells the service manager what we are doing; silent where there is none. Never raises: nobody could act on it."""

    def __init__(self, address: str = "", *, watchdog_seconds: float = 0.0) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds
        """Between two signs of life, at most; 0 where none is wanted."""

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> Notifier:
        """Takes the variables away: they are for this process only."""
        address = environment.pop("NOTIFY_SOCKET", "")
        microseconds = environment.pop("WATCHDOG_USEC", "0")
        pid = environment.pop("WATCHDOG_PID", str(os.getpid()))
        wanted = pid == str(os.getpid()) and microseconds.isdigit()
        return cls(address, watchdog_seconds=int(microseconds) / 1e6 if wanted else 0.0)

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, reason: str) -> None:
        self._send("STOPPING=1", f"STATUS=stopping: {reason}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sender:
            try:
                sender.sendto("\n".join(line.replace("\n", " ") for line in lines).encode(), self._address)
            except OSError:
                return


def inherited_sockets(environment: MutableMapping[str, str]) -> dict[str, socket.socket]:
    """Unix sockets that the service manager listens on for us, by path. Takes the variables away."""
    count, pid = environment.pop("LISTEN_FDS", "0"), environment.pop("LISTEN_PID", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdigit():
        return {}
    found = {}
    for fd in range(_FIRST_FD, _FIRST_FD + int(count)):
        os.set_inheritable(fd, False)
        listener = socket.socket(fileno=fd)
        name = listener.getsockname()
        if listener.family == socket.AF_UNIX and isinstance(name, str) and name:
            found[str(Path(name))] = listener
        else:
            listener.close()
    return found
