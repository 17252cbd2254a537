"""Processes that a program of ours started and left: `runc exec --detach` does so with the command it runs.

A subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) becomes the parent of the orphans below it, also of one that has moved to
another PID namespace since, and can so learn how they end. It has to reap those nobody asked for, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from isulad_py.host import libc, pidfd
from isulad_py.host.failures import translated
from isulad_py.model.errors import HostFailure

SWEEP_SECONDS: Final = 30.0

_awaited: set[int] = set()
"""Numbers of the adopted that somebody awaits."""


def accept_orphans() -> None:
    """Makes this process a subreaper. Idempotent."""
    with translated("become a subreaper"):
        libc.set_child_subreaper()


class Adopted:
    """An orphan that has become our child: awaited and signalled like a child that we started."""

    def __init__(self, pid: int) -> None:
        """Raises HostFailure where there is no such child."""
        self.pid = pid
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        with translated(f"adopt process {pid}"):
            self._pidfd = os.pidfd_open(pid)
        try:
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError as error:
            os.close(self._pidfd)
            raise HostFailure(f"adopt process {pid}: it is not a child of this daemon") from error
        _awaited.add(pid)
        self._loop.add_reader(self._pidfd, self._on_end)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        code = _reap(self._pidfd)
        os.close(self._pidfd)
        _awaited.discard(self.pid)
        if not self._ended.done():
            self._ended.set_result(code)

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """The exit status; negative for a signal. Safe to cancel and to call again."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Success when the process has already ended."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)


def _reap(fd: int) -> int:
    try:
        result = os.waitid(os.P_PIDFD, fd, os.WEXITED)
    except ChildProcessError:
        return -signal.SIGKILL
    if result is None:
        return -signal.SIGKILL
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def reap_foreign(spare: Collection[int]) -> None:
    """Reaps, at once, the zombies among our children that lived in another PID namespace, but for those that are
    awaited and those in `spare`: until then that namespace, and its first process, cannot end (pid_namespaces(7))."""
    for pid in pidfd.children(os.getpid()):
        if pid not in _awaited and pid not in spare and (started := pidfd.zombie_since(pid)) and _is_foreign(pid):
            pidfd.reap(pid, started)


def _is_foreign(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith(b"NSpid:")), [])
    return len(numbers) > 1


class Strays:
    """Reaps orphans that nobody awaits. One is taken when it was a zombie at two sweeps: whoever started it has had all
    the time between them to care."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._next = 0.0
        self._seen: set[tuple[int, int]] = set()

    def sweep(self) -> None:
        """Cheap; does nothing before its time."""
        if self._monotonic() < self._next:
            return
        self._next = self._monotonic() + SWEEP_SECONDS
        zombies = {(pid, started) for pid in pidfd.children(os.getpid()) if (started := pidfd.zombie_since(pid))}
        for pid, started in zombies & self._seen:
            pidfd.reap(pid, started)
        self._seen = zombies - self._seen
