"""Open descriptors (pipes, terminals, connections) as byte streams on the loop.

Nothing is read before it is asked for and nothing is kept here: whoever is at the far end of a full pipe waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any, Final

from isulad_py.host.failures import translate, translated
from isulad_py.model.errors import EngineError, Unavailable

BROKEN: Final = frozenset({errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ETIMEDOUT, errno.EIO, errno.ESHUTDOWN})
"""The far end is gone. EIO is what a terminal says."""
PIPE_BYTES: Final = 256 * 1024
"""Four times the default: fewer turns of the loop for the same bytes."""


def pipe() -> tuple[int, int]:
    """Both ends of a roomier pipe; the caller makes his own end non-blocking by wrapping it."""
    with translated("make a pipe"):
        ends = os.pipe()
    with contextlib.suppress(OSError):  # beyond what one user may have of pipes, the default does
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return ends


def empty_input() -> int:
    """A descriptor that ends at once, and belongs to nobody else."""
    with translated("make a pipe"):
        theirs, ours = os.pipe()
    os.close(ours)
    return theirs


def give_pipes(ends: Iterable[int | str], uid: int) -> None:
    """Makes the user the owner of those that are pipes; an end may be a path of /proc/<pid>/fd. Who is root in a user
    namespace has no rights in what belongs to nobody there: /dev/stdout could not be opened."""
    with translated("give away a pipe"):
        for end in ends:
            if stat.S_ISFIFO(os.stat(end).st_mode):  # noqa: PTH116 - descriptors too
                os.chown(end, uid, -1)


class _Turn:
    """Waits until one direction of a descriptor is ready; can be woken by its close. For one task at a time."""

    def __init__(self, add: Callable[..., Any], remove: Callable[[int], Any]) -> None:
        self._add = add
        self._remove = remove
        self._waiting: asyncio.Future[None] | None = None

    async def of(self, fd: int) -> None:
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        self._add(fd, self.wake)
        try:
            await waiting
        finally:
            if self._waiting is waiting:  # else `close` has removed it, and the number may be another's by now
                self._waiting = None
                self._remove(fd)

    def wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self, fd: int) -> None:
        if self._waiting is not None:
            self._remove(fd)
            self.wake()
            self._waiting = None


class Source:
    """Implements ports.streams.ByteSource over a descriptor, which it owns."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._ended = False
        loop = asyncio.get_running_loop()
        self._turn = _Turn(loop.add_reader, loop.remove_reader)

    async def read(self, limit_bytes: int) -> bytes:
        """At least one byte and at most the limit; empty at the end and after `close`. Unavailable where the far end
        broke off. For one task at a time; nothing is lost where it is cancelled."""
        # A writer that is never slower than its reader must not keep the loop from everybody else.
        await asyncio.sleep(0)
        while self._fd >= 0 and not self._ended:
            try:
                data = self._take(limit_bytes)
            except BlockingIOError:
                await self._turn.of(self._fd)
                continue
            except OSError as error:
                self._ended = True
                raise _broken("read", error) from error
            self._ended = not data
            return data
        return b""

    def _take(self, limit_bytes: int) -> bytes:
        return os.read(self._fd, limit_bytes)

    def close(self) -> None:
        """Idempotent; wakes whoever reads."""
        if self._fd >= 0:
            self._turn.close(self._fd)
            os.close(self._fd)
            self._fd = -1


class Sink:
    """Implements ports.streams.ByteSink over a descriptor, which it owns; its close is the end for the far end."""

    def __init__(self, fd: int, *, finish: Callable[[], object] = lambda: None) -> None:
        """`finish` is called before the descriptor is closed, for what is open under another one, too."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._finish = finish
        loop = asyncio.get_running_loop()
        self._turn = _Turn(loop.add_writer, loop.remove_writer)

    async def write(self, data: bytes) -> None:
        """Returns when the kernel has it all. Unavailable when nobody reads any more, also while this waits. For one
        task at a time; one that is cancelled may have written a part."""
        await asyncio.sleep(0)
        left = memoryview(data)
        while left:
            if self._fd < 0:
                raise Unavailable("write: the stream is closed")
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                self._expect_reader()
                await self._turn.of(self._fd)
            except OSError as error:
                raise _broken("write", error) from error

    def _expect_reader(self) -> None:
        """Raises Unavailable where it is vain to wait for one."""

    async def close(self) -> None:
        """Idempotent."""
        self.abandon()

    def abandon(self) -> None:
        """As `close`, from where nothing may be awaited."""
        if self._fd >= 0:
            self._turn.close(self._fd)
            with contextlib.suppress(OSError):
                self._finish()
            os.close(self._fd)
            self._fd = -1


def _broken(step: str, error: OSError) -> EngineError:
    if error.errno in BROKEN:
        reason = (error.strerror or "gone").lower()
        return Unavailable(f"{step}: the far end is gone: {reason}")
    return translate(step, error)
