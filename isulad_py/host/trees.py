"""Removal of directory trees that containers have written into. Synchronous."""

from __future__ import annotations

import errno
import os
import secrets
from typing import Final

from isulad_py.host import libc
from isulad_py.host.failures import translate
from isulad_py.model.errors import FailedPrecondition

RESOLVE_NO_XDEV: Final = 0x01
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08

MAX_OPEN: Final = 64
"""Levels held open at once: a container may nest directories far deeper than there are descriptors."""


def remove_tree(path: str) -> None:
    """Removes the tree at `path` without following a link or leaving its mount. Idempotent.

    Raises FailedPrecondition, with the contents of the mount untouched, where something is still mounted in it.
    """
    parent, name = os.path.split(path.rstrip("/"))
    try:
        parent_fd = os.open(parent or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise translate("remove", error) from error
    try:
        _Removal(path, parent_fd, name).run()
    except OSError as error:
        if error.errno in {errno.EXDEV, errno.EBUSY}:
            raise FailedPrecondition(f"remove {path}: {error.filename} is still mounted") from error
        raise translate(f"remove {path}:", error) from error
    finally:
        os.close(parent_fd)


class _Removal:
    """One run over one tree. Directories nested too deep are first moved up to the top."""

    def __init__(self, path: str, parent_fd: int, name: str) -> None:
        self._path = path
        self._parent_fd = parent_fd
        self._name = name
        self._top_fd = -1
        self._moved: list[str] = []

    def run(self) -> None:
        try:
            self._top_fd = self._open(self._parent_fd, self._name)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            os.unlink(self._name, dir_fd=self._parent_fd)
            return
        try:
            self._empty(self._top_fd, 1)
            while self._moved:
                self._remove_directory(self._top_fd, self._moved.pop(), 1)
        finally:
            os.close(self._top_fd)
        self._rmdir(self._parent_fd, self._name)

    @staticmethod
    def _open(directory_fd: int, name: str) -> int:
        """EXDEV where the directory is a mount point: bind mounts of the same device as well."""
        return libc.openat2(
            directory_fd,
            name,
            os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW,
            resolve=RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
        )

    def _empty(self, fd: int, depth: int) -> None:
        with os.scandir(fd) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_directory in names:
            if not is_directory:
                self._unlink(fd, name)
            elif depth < MAX_OPEN or not self._move_up(fd, name):
                self._remove_directory(fd, name, depth)

    def _remove_directory(self, fd: int, name: str, depth: int) -> None:
        try:
            child = self._open(fd, name)
        except FileNotFoundError:
            return
        try:
            self._empty(child, depth + 1)
        finally:
            os.close(child)
        self._rmdir(fd, name)

    def _move_up(self, fd: int, name: str) -> bool:
        """False where the file system cannot rename it: then it is removed in place."""
        moved = f".removing-{secrets.token_hex(8)}"
        try:
            os.rename(name, moved, src_dir_fd=fd, dst_dir_fd=self._top_fd)
        except OSError:
            return False
        self._moved.append(moved)
        return True

    @staticmethod
    def _unlink(fd: int, name: str) -> None:
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            return

    @staticmethod
    def _rmdir(fd: int, name: str) -> None:
        try:
            os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            return
