"""Copies of directories out of a root that may be hostile (an image's root file system). Synchronous, for one thread.

The directory itself is found by `host.confined`; below it every name is opened relative to its parent and no link is
followed. Nobody else writes into either tree meanwhile. Sizes and depths are the image's to choose: they are bounded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from isulad_py.host import confined
from isulad_py.host.failures import translated
from isulad_py.host.inherit import set_xattrs
from isulad_py.model.errors import FailedPrecondition, ResourceExhausted

MAX_DEPTH: Final = 256
"""Each level holds two descriptors."""
_READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE: Final = 1 << 30


class Allowance:
    """What copies may take, one or several together."""

    def __init__(self, *, entries: int, used_bytes: int) -> None:
        self._entries = entries
        self._bytes = used_bytes

    def take(self, used_bytes: int) -> None:
        """One more entry. ResourceExhausted where it is one too many, or too large."""
        self._entries -= 1
        self._bytes -= used_bytes
        if self._entries < 0 or self._bytes < 0:
            raise ResourceExhausted("more is to be copied than any volume of an image may have")


def copy_contents(root: str, path: str, target: str, allowance: Allowance) -> None:
    """What the directory `path` inside `root` holds, and its own attributes, for the empty directory `target`: owners,
    modes, times, extended attributes, holes, links among what is copied.

    Raises NotFound where there is no such directory, FailedPrecondition where it is none or nested too deep.
    """
    with contextlib.ExitStack() as stack, translated(f"copy {path}:"):
        source_fd = confined.open_in_root(root, path, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, source_fd)
        target_fd = os.open(target, _READ_DIRECTORY)
        stack.callback(os.close, target_fd)
        _Copy(path, target_fd, allowance).directory(source_fd, target_fd, "", 1)


class _Copy:
    def __init__(self, path: str, top_fd: int, allowance: Allowance) -> None:
        self._path = path
        self._top_fd = top_fd
        self._allowance = allowance
        self._linked: dict[tuple[int, int], str] = {}
        """Where files of several names were copied to, below the top."""

    def directory(self, source: int, target: int, shown: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise FailedPrecondition(f"{self._path}: directories are nested more than {MAX_DEPTH} deep")
        with os.scandir(source) as entries:
            for entry in entries:
                self._entry(source, target, entry.name, f"{shown}{entry.name}", depth)
        _dress(source, target)

    def _entry(self, source: int, target: int, name: str, shown: str, depth: int) -> None:
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        self._allowance.take(status.st_blocks * 512)
        if stat.S_ISDIR(status.st_mode):
            os.mkdir(name, 0o700, dir_fd=target)
            with _opened(source, name, _READ_DIRECTORY) as old, _opened(target, name, _READ_DIRECTORY) as new:
                self.directory(old, new, f"{shown}/", depth + 1)
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self._linked:
            os.link(self._linked[identity], name, src_dir_fd=self._top_fd, dst_dir_fd=target, follow_symlinks=False)
            return
        if status.st_nlink > 1:
            self._linked[identity] = shown
        if stat.S_ISREG(status.st_mode):
            _copy_file(source, target, name)
        else:
            _copy_node(source, target, name, status)


def _copy_file(source: int, target: int, name: str) -> None:
    create = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    read = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with _opened(source, name, read) as old, _opened(target, name, create) as new:
        _copy_data(old, new, os.fstat(old).st_size)
        _dress(old, new)


def _copy_data(source: int, target: int, size: int) -> None:
    """Holes stay holes: a file may claim to be of any size."""
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                break
            raise
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (sent := os.sendfile(target, source, start, min(end - start, _PIECE))):
            start += sent
    os.ftruncate(target, size)


def _copy_node(source: int, target: int, name: str, status: os.stat_result) -> None:
    """A link, fifo, socket or device."""
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    else:
        os.mknod(name, status.st_mode, status.st_rdev, dir_fd=target)
    os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=target)
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def _dress(source: int, target: int) -> None:
    """After the content: writing takes away setuid and capabilities, and changes times."""
    status = os.fstat(source)
    os.fchown(target, status.st_uid, status.st_gid)
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    set_xattrs(target, {name: os.getxattr(source, name) for name in os.listxattr(source)})
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextlib.contextmanager
def _opened(directory: int, name: str, flags: int) -> Iterator[int]:
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)
