"""The directories of a tree that is being written from an untrusted archive, found or made by their path. Synchronous.

A path is resolved as if the tree's root were the root directory: mostly by the kernel (openat2, RESOLVE_IN_ROOT); where
something is missing, part by part, each opened without following a link, and links read and followed here. Nobody else
may be able to reach the tree meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Final

from isulad_py.host import libc
from isulad_py.host.confined import RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS

MAX_OPEN: Final = 64
"""Directories held open: archives come sorted by directory, so that nearly every entry finds its parent here."""
PATH_MAX: Final = 4096
MAX_LINKS: Final = 40
"""Followed in one path, as the kernel has it."""
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_RESOLVE: Final = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS

Make = Callable[[int, bytes, bytes], int]
"""Makes, in the directory of the descriptor, the one of that name, and gives its descriptor. The third is its path from
the root, without a link in it."""


class Parents:
    """Raises OSError. Descriptors stay good until `close_retired`, or until a further directory is asked for."""

    def __init__(self, root: str, make: Make) -> None:
        self._root_fd = os.open(root, DIRECTORY | os.O_NOFOLLOW)
        self._make = make
        self._open: dict[bytes, int] = {}
        self._retired: list[int] = []

    @property
    def root_fd(self) -> int:
        return self._root_fd

    def close(self) -> None:
        """Idempotent."""
        self.forget()
        self.close_retired()
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1

    def find(self, path: bytes) -> int:
        """FileNotFoundError where there is none."""
        if not path:
            return self._root_fd
        fd = self._open.get(path)
        if fd is not None:
            return fd
        try:
            fd = libc.openat2(self._root_fd, os.fsdecode(path), DIRECTORY, resolve=_RESOLVE)
        except BlockingIOError:
            # Something on the machine was renamed or mounted while a `..` was resolved; we have no need of the kernel.
            return self._walk(path, make=False)
        return self.remember(path, fd)

    def need(self, path: bytes) -> int:
        """What is missing is made, also behind links: an archive may rely on what a layer below has (`var/run` leads to
        `../run`)."""
        try:
            return self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return self._walk(path, make=True)

    def remember(self, path: bytes, fd: int) -> int:
        former = self._open.pop(path, None)
        if former is not None:
            self._retired.append(former)
        elif len(self._open) >= MAX_OPEN:
            self._retired.append(self._open.pop(next(iter(self._open))))
        self._open[path] = fd
        return fd

    def forget(self) -> None:
        """What is open may no longer be what its path means. The entry at hand may still be using it."""
        self._retired.extend(self._open.values())
        self._open.clear()

    def close_retired(self) -> None:
        while self._retired:
            os.close(self._retired.pop())

    def _walk(self, path: bytes, *, make: bool) -> int:
        pending = path.split(b"/")[::-1]
        done: list[bytes] = []
        fd, links = self._root_fd, 0
        while pending:
            part = pending.pop()
            if part in {b"", b"."}:
                continue
            if part == b"..":
                del done[-1:]
                fd = self.find(b"/".join(done))
                continue
            target = self._step(fd, part, b"/".join([*done, part]), make)
            if isinstance(target, int):
                done.append(part)
                fd = target
                self.close_retired()
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            pending += target.split(b"/")[::-1]
            if target.startswith(b"/"):
                done, fd = [], self._root_fd
        return fd

    def _step(self, above: int, part: bytes, path: bytes, make: bool) -> int | bytes:
        """A descriptor, or where a link leads."""
        if len(path) >= PATH_MAX:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        try:
            return self.remember(path, os.open(part, DIRECTORY | os.O_NOFOLLOW, dir_fd=above))
        except FileNotFoundError:
            if not make:
                raise
        except NotADirectoryError:
            state = os.lstat(part, dir_fd=above)
            if stat.S_ISLNK(state.st_mode):
                return os.readlink(part, dir_fd=above)
            if not (make and is_whiteout(state)):
                raise
        return self.remember(path, self._make(above, part, path))


def is_whiteout(state: os.stat_result) -> bool:
    """Of a layer below (kernel, filesystems/overlayfs)."""
    return stat.S_ISCHR(state.st_mode) and state.st_rdev == 0
