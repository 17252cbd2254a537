"""What a directory tree takes on disk. Synchronous."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from isulad_py.host import libc
from isulad_py.host.failures import translate
from isulad_py.host.trees import RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV

_RESOLVE: Final = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
_BLOCK: Final = 512
"""Unit of st_blocks, whatever the file system's own (stat(2))."""
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG})
"""The tree changes while it is walked; what is nested deeper than a path can say is not counted."""


def measure_tree(path: str) -> tuple[int, int] | None:
    """Allocated bytes and inodes, a file with several links counted once; None where there is no such tree.

    Never leaves the tree: neither through a link, nor through a directory that is swapped for one, nor over a mount.
    """
    try:
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate("measure", error) from error
    try:
        return _measure(root)
    except OSError as error:
        raise translate(f"measure {path}:", error) from error
    finally:
        os.close(root)


def _measure(root: int) -> tuple[int, int]:
    used, inodes = os.fstat(root).st_blocks * _BLOCK, 1
    seen: set[int] = set()
    todo = [""]
    while todo:
        folder = todo.pop()
        for name, state in _children(root, folder):
            if stat.S_ISDIR(state.st_mode):
                todo.append(f"{folder}/{name}" if folder else name)
            elif state.st_nlink > 1:
                if state.st_ino in seen:
                    continue
                seen.add(state.st_ino)
            used += state.st_blocks * _BLOCK
            inodes += 1
    return used, inodes


def _children(root: int, folder: str) -> list[tuple[str, os.stat_result]]:
    try:
        fd = libc.openat2(root, folder or ".", os.O_RDONLY | os.O_DIRECTORY, resolve=_RESOLVE)
    except OSError as error:
        if error.errno in _GONE:
            return []
        raise
    try:
        found = []
        with os.scandir(fd) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue
        return found
    finally:
        os.close(fd)
