"""What a program says on stdout and stderr, collected whole up to a limit; what comes beyond is read and dropped, so
that the program never blocks."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from typing import Final

from isulad_py.host.failures import translated

CHUNK_BYTES: Final = 256 * 1024
LEFT_OPEN_SECONDS: Final = 1.0
PIPE_READS: Final = 4
"""Take what a pipe holds, whoever made it larger."""


class _Collector:
    """Collects one pipe up to a limit, then reads and drops."""

    def __init__(self, fd: int, limit_bytes: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._limit = limit_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self.truncated = False
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(fd, self._on_ready)

    def _on_ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        room = self._limit - self._size
        if len(data) > room:
            self.truncated = True
            data = data[:room]
        if data:
            self._parts.append(data)
            self._size += len(data)

    def take_all(self) -> None:
        """What is there by now, and no more: somebody may go on writing."""
        for _ in range(PIPE_READS):
            if self._fd >= 0:
                self._on_ready()

    def value(self) -> bytes:
        return b"".join(self._parts)

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if not self.done.done():
            self.done.set_result(None)


class Collected:
    """Both outputs, and the program's ends of their pipes until it has them."""

    def __init__(self, limit_bytes: int) -> None:
        with contextlib.ExitStack() as undo, translated("make pipes"):
            self._given = undo.enter_context(contextlib.ExitStack())
            self._out, stdout = self._pipe(undo, limit_bytes)
            self._err, stderr = self._pipe(undo, limit_bytes)
            self._undo = undo.pop_all()
        self.fds = (stdout, stderr)
        """For the program."""

    def _pipe(self, undo: contextlib.ExitStack, limit_bytes: int) -> tuple[_Collector, int]:
        ours, theirs = os.pipe()
        self._given.callback(os.close, theirs)
        collector = _Collector(ours, limit_bytes)
        undo.callback(collector.close)
        return collector, theirs

    def release(self) -> None:
        """The program has its ends: without a copy here, it is the one to end them. Idempotent."""
        self._given.close()

    async def drain(self) -> None:
        """Waits for the end of both outputs, but not for a grandchild that keeps them open (a daemonised one would)."""
        await asyncio.wait((self._out.done, self._err.done), timeout=LEFT_OPEN_SECONDS)
        # Where this whole process was held up, the time was over before the pipes were looked at.
        self._out.take_all()
        self._err.take_all()

    def stdout(self) -> bytes:
        return self._out.value()

    def stderr(self) -> bytes:
        return self._err.value()

    @property
    def truncated(self) -> bool:
        return self._out.truncated or self._err.truncated

    def close(self) -> None:
        self._undo.close()


@contextlib.contextmanager
def collected(limit_bytes: int) -> Iterator[Collected]:
    output = Collected(limit_bytes)
    try:
        yield output
    finally:
        output.close()
