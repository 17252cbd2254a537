"""conmon's control fifo: lines of three numbers, `1 <height> <width>` resizes the terminal, `2 0 0` opens the log anew.

conmon 2.1.6 takes the first line twice and the others not at all where it reads several at once, so one is sent only
when the one before has been read.

It opens a log anew as `<log>.tmp`, which it then moves to its place, and ends itself where it cannot: the container's
output would end with it. So it is only told to where that will work.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import stat
import struct
import termios
import weakref
from pathlib import Path
from typing import Final

from isulad_py.host import blocking, files, pidfd
from isulad_py.host.failures import translate
from isulad_py.model.container import Processes
from isulad_py.model.errors import DeadlineExceeded, FailedPrecondition, NotFound, ResourceExhausted
from isulad_py.ports.clock import Clock

ANSWER_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.002
LOG_MODE: Final = 0o640
"""As the monitor makes logs."""


class Control:
    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def resize(self, fifo: str, *, width: int, height: int) -> None:
        await self._send(fifo, f"1 {height} {width}\n")

    async def reopen_log(self, fifo: str, log_path: str, processes: Processes) -> None:
        """Returns when the monitor writes to the file at `log_path`. Nothing is done where it does already: conmon
        would put an empty file in its place. FailedPrecondition or ResourceExhausted where no file can be made there;
        the monitor then goes on with the one that it has."""
        if await blocking.run(_holds, processes, log_path):
            return
        await blocking.run(_make_room, log_path)
        try:
            await self._send(fifo, "2 0 0\n")
        except (FailedPrecondition, NotFound):  # nobody will move it
            await blocking.run(files.remove_file, _temporary(log_path))
            raise
        deadline = self._clock.monotonic() + ANSWER_SECONDS
        while not await blocking.run(_holds, processes, log_path):
            if self._clock.monotonic() > deadline:
                raise DeadlineExceeded(f"reopen the log: the monitor has not opened {log_path}")
            await self._clock.sleep(POLL_SECONDS)

    async def _send(self, fifo: str, line: str) -> None:
        lock = self._locks.setdefault(fifo, asyncio.Lock())
        async with lock:
            fd = _open(fifo)
            try:
                os.write(fd, line.encode())
                await self._until_read(fd)
            finally:
                os.close(fd)

    async def _until_read(self, fd: int) -> None:
        deadline = self._clock.monotonic() + ANSWER_SECONDS
        while _unread(fd):
            if _deserted(fd):
                raise FailedPrecondition("the container's monitor has ended")
            if self._clock.monotonic() > deadline:
                raise DeadlineExceeded("the monitor does not read its control fifo")
            await self._clock.sleep(POLL_SECONDS)


def _open(fifo: str) -> int:
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotFound(f"the container has no control fifo: {fifo}") from error
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise FailedPrecondition("the container's monitor has ended") from error
        raise translate("open the control fifo", error) from error


def _unread(fd: int) -> int:
    size: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return size


def _deserted(fd: int) -> bool:
    """Whether nobody reads the fifo any more."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _holds(processes: Processes, path: str) -> bool:
    """Whether the monitor has the file at `path` open. FailedPrecondition where there is no monitor."""
    if not pidfd.alive(processes.monitor_pid, processes.monitor_started):
        raise FailedPrecondition(f"reopen the log {path}: the container's monitor has ended")
    try:
        wanted = Path(path).stat()
        entries = list(Path(f"/proc/{processes.monitor_pid}/fd").iterdir())
    except OSError:
        return False
    return any(_is(entry, wanted) for entry in entries)


def _temporary(log_path: str) -> str:
    return f"{log_path}.tmp"


def _make_room(log_path: str) -> None:
    """Makes the file that the monitor will open, where that can be moved to `log_path`."""
    temporary = _temporary(log_path)
    try:
        if os.path.isdir(log_path) and not os.path.islink(log_path):  # noqa: PTH112, PTH114 - a text, as all around it
            raise FailedPrecondition(f"reopen the log: {log_path} is a directory")
        # Not through a link, which the monitor would follow, and not a fifo, where it would wait.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, LOG_MODE)
    except OSError as error:
        found = translate("reopen the log", error)
        raise found if isinstance(found, ResourceExhausted) else FailedPrecondition(found.message) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FailedPrecondition(f"reopen the log: {temporary} is not a regular file")
    finally:
        os.close(fd)


def _is(entry: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(entry.stat(), wanted)
    except OSError:
        return False
