"""Files inside a root that may be hostile (an image's root file system). Synchronous.

The kernel resolves each path as if `root` were the root directory (openat2, RESOLVE_IN_ROOT): links, absolute ones
and `..` included, cannot lead out of it, whatever changes meanwhile.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from isulad_py.host import libc
from isulad_py.host.failures import translate
from isulad_py.host.files import read_descriptor
from isulad_py.model.errors import EngineError, FailedPrecondition, NotFound

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_IN_ROOT: Final = 0x10
_RESOLVE: Final = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
_TRIES: Final = 1000
"""openat2 answers EAGAIN when anything on the machine is renamed or mounted while it resolves `..`."""


def open_in_root(root: str, path: str, flags: int, *, mode: int = 0) -> int:
    """A descriptor of `path` inside `root`, close-on-exec, the caller's to close.

    Raises NotFound, FailedPrecondition for a path that cannot be resolved (a loop of links), or HostFailure.
    """
    root_fd = _open_root(root)
    try:
        return resolve(root_fd, path, flags, mode=mode)
    except OSError as error:
        raise _translate(root, path, error) from error
    finally:
        os.close(root_fd)


def read_in_root(root: str, path: str, limit_bytes: int) -> bytes:
    """The content of a regular file inside `root`; errors as `open_in_root` and `files.read_limited`."""
    fd = open_in_root(root, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return read_descriptor(fd, path, limit_bytes)
    finally:
        os.close(fd)


def resolve(root_fd: int, path: str, flags: int, *, mode: int = 0, restrict: int = 0) -> int:
    """A descriptor of `path` as if the directory of `root_fd` were the root directory. `restrict` are further
    RESOLVE_*. Raises OSError."""
    for _ in range(_TRIES - 1):
        try:
            return libc.openat2(root_fd, path or "/", flags, mode=mode, resolve=_RESOLVE | restrict)
        except BlockingIOError:
            continue
    return libc.openat2(root_fd, path or "/", flags, mode=mode, resolve=_RESOLVE | restrict)


def mkdir_in_root(root: str, path: str, mode: int = 0o755, uid: int = 0, gid: int = 0) -> None:
    """Makes the directory and its missing parents inside `root`; those made get `mode`, `uid` and `gid`.

    Idempotent. Raises FailedPrecondition where something else is in the way.
    """
    root_fd = _open_root(root)
    try:
        done = ""
        for part in path.split("/"):
            if part in {"", "."}:
                continue
            parent, done = done, f"{done}/{part}"
            _step(root_fd, parent or "/", part, (mode, uid, gid))
    except OSError as error:
        raise _translate(root, path, error) from error
    finally:
        os.close(root_fd)


def _step(root_fd: int, parent: str, part: str, owner: tuple[int, int, int]) -> None:
    try:
        os.close(resolve(root_fd, f"{parent}/{part}", os.O_PATH | os.O_DIRECTORY))
    except FileNotFoundError:
        mode, uid, gid = owner
        parent_fd = resolve(root_fd, parent, os.O_PATH | os.O_DIRECTORY)
        try:
            # EEXIST is a dangling link here: making its target is not what was asked for.
            os.mkdir(part, mode, dir_fd=parent_fd)
            made = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd)
            try:
                os.fchmod(made, mode)
                os.fchown(made, uid, gid)
            finally:
                os.close(made)
        finally:
            os.close(parent_fd)


def _open_root(root: str) -> int:
    try:
        return os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _translate(root, "/", error) from error


def _translate(root: str, path: str, error: OSError) -> EngineError:
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{path}: no such file below {root}")
        case errno.ENOTDIR | errno.ELOOP | errno.EEXIST | errno.EXDEV | errno.ENAMETOOLONG:
            return FailedPrecondition(f"{path} below {root}: {(error.strerror or '').lower()}")
        case _:
            return translate(f"{path} below {root}:", error)
