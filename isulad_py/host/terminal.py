"""Pseudo-terminals whose other side is in a container: taken over from a runtime, read, sized."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import posixpath
import select
import socket
import struct
import termios
from collections.abc import Awaitable, Callable
from typing import Final

from isulad_py.host.descriptors import Sink, Source
from isulad_py.host.failures import translate, translated
from isulad_py.host.files import remove_file
from isulad_py.model.errors import HostFailure, InvalidInput, Unavailable

LOOK_AGAIN_SECONDS: Final = 0.1
MESSAGE_BYTES: Final = 4096
"""A runtime sends the terminal's name beside it."""
DROP_BYTES: Final = 64 * 1024
_LARGEST: Final = 0xFFFF


class ConsoleSocket:
    """Where a runtime sends the master of a terminal that it has made (`--console-socket`, as runc's terminals.md has
    it). Synchronous: a runtime that has left has sent it before."""

    def __init__(self, directory: str, name: str) -> None:
        self._path = posixpath.join(directory, name)
        with contextlib.ExitStack() as undo, translated(f"listen for a terminal at {self._path}"):
            self.directory_fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            undo.callback(os.close, self.directory_fd)
            # A socket's name may have 107 bytes; the directory's may be longer.
            self.argument = f"/proc/self/fd/{self.directory_fd}/{name}"
            """For the runtime, which has to inherit `directory_fd`."""
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            undo.callback(self._socket.close)
            self._socket.setblocking(False)
            self._socket.bind(self.argument)
            undo.callback(remove_file, self._path)
            self._socket.listen(1)
            self._undo = undo.pop_all()

    def receive(self) -> int:
        """The master, which the caller owns. HostFailure where the runtime has sent none."""
        try:
            connection, _ = self._socket.accept()
            with connection:
                connection.setblocking(False)
                _, fds, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 1)
        except BlockingIOError as error:
            raise HostFailure("the runtime has not sent a terminal") from error
        except OSError as error:
            raise translate("receive a terminal", error) from error
        if fds and os.isatty(fds[0]):
            return fds[0]
        for fd in fds:
            os.close(fd)
        raise HostFailure("what the runtime has sent is no terminal")

    def close(self) -> None:
        """Idempotent."""
        self._undo.close()


class TerminalSource(Source):
    """What is written to a terminal's other side. A terminal that nobody has open says EIO, and goes on when it is
    opened again (/dev/tty), so that it has ended only with its session."""

    def __init__(self, fd: int, *, session: Callable[[], Awaitable[object]]) -> None:
        """`session` returns when the terminal's first process has ended; it is called and cancelled at will."""
        super().__init__(fd)
        self._session = session
        self._over = False
        self._discarding = False
        self._later: asyncio.TimerHandle | None = None

    async def read(self, limit_bytes: int) -> bytes:
        while True:
            data = await super().read(limit_bytes)
            if data or self._fd < 0 or self._over:
                return data
            # Once more behind the session's end: nothing more can come then.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                    await self._session()
                    self._over = True
            self._ended = False

    def discard(self) -> None:
        """Reads and drops from now on: what nobody wants must not stop who writes it."""
        asyncio.get_running_loop().add_reader(self._fd, self._drop)
        self._discarding = True

    def _drop(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            if not self._take(DROP_BYTES):
                loop.remove_reader(self._fd)
                self._later = loop.call_later(LOOK_AGAIN_SECONDS, self.discard)
        except BlockingIOError:
            return

    def close(self) -> None:
        if self._discarding:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._discarding = False
        if self._later is not None:
            self._later.cancel()
        super().close()

    def _take(self, limit_bytes: int) -> bytes:
        """The kernel gives at most 4 KiB at a time."""
        parts = [self._some(limit_bytes)]
        size = len(parts[0])
        while parts[-1] and size < limit_bytes:
            try:
                parts.append(self._some(limit_bytes - size))
            except BlockingIOError:
                break
            size += len(parts[-1])
        return b"".join(parts)

    def _some(self, limit_bytes: int) -> bytes:
        try:
            return os.read(self._fd, limit_bytes)
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise


class TerminalSink(Sink):
    """What is typed. Its close ends nothing for the far side: a terminal has no end of input but the one that is
    typed."""

    def _expect_reader(self) -> None:
        # The kernel neither refuses what is typed to a terminal that nobody has open, nor lets one wait for better.
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if any(events & select.POLLHUP for _, events in poll.poll(0)):
            raise Unavailable("write: nobody has the terminal open")


class Terminal:
    """The near side of a terminal, which it owns."""

    def __init__(self, master: int, *, session: Callable[[], Awaitable[object]]) -> None:
        with contextlib.ExitStack() as undo, translated("open a terminal"):
            undo.callback(os.close, master)
            self.source = TerminalSource(os.dup(master), session=session)
            undo.callback(self.source.close)
            self.sink = TerminalSink(os.dup(master))
            undo.callback(self.sink.abandon)
            self._undo = undo.pop_all()
        self._master = master

    def resize(self, width: int, height: int) -> None:
        """Columns and rows; nothing once it is closed."""
        if not (0 <= width <= _LARGEST and 0 <= height <= _LARGEST):
            raise InvalidInput(f"terminal size: {width} x {height} is out of range")
        if self._master >= 0:
            with translated("resize the terminal"):
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def close(self) -> None:
        """Hangs up. Idempotent."""
        self._master = -1
        self._undo.close()
