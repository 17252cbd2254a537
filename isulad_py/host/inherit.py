"""Attributes of files in image layers: what a layer may set, and what a directory takes from the layers below."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from isulad_py.host import confined
from isulad_py.host.failures import translate, translated
from isulad_py.host.trees import RESOLVE_NO_SYMLINKS
from isulad_py.model.errors import DataLoss, EngineError, Unsupported

OPAQUE: Final = "trusted.overlay.opaque"
_XATTR_PREFIXES: Final = ("user.", "security.capability", "security.ima", "security.evm", "system.posix_acl_")
"""What a layer may set. Overlay's own attributes would change what other layers mean; labels belong to this host."""
_ROOM: Final = 1024 * 1024
"""More than all attributes of a file can take."""
_READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
_REPLACED: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def set_xattrs(target: int | str, xattrs: Mapping[str, bytes]) -> None:
    """What the file system, or the kind of file (`user.` on links and devices), cannot hold at all is left out, as
    containerd does. A file without its capabilities is another program: that is an error.

    Raises Unsupported for what cannot be set here, DataLoss for what no file can have; they name the attribute."""
    for name, value in xattrs.items():
        if not name.startswith(_XATTR_PREFIXES) or name.startswith("user.overlay."):
            continue
        try:
            if isinstance(target, int):
                os.setxattr(target, name, value)
            else:
                os.setxattr(target, name, value, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP or (error.errno == errno.EPERM and name.startswith("user.")):
                continue
            raise _refused(target, name, len(value), error) from error


def _refused(target: int | str, name: str, size: int, error: OSError) -> EngineError:
    what = f"attribute {name[:200]!r} of {size} bytes"
    match error.errno:
        case errno.ENOSPC if _has_room(target):
            return Unsupported(f"{what}: the file system of the image store cannot hold one of that size")
        case errno.EPERM | errno.EACCES:
            return Unsupported(f"{what}: this daemon may not set it: {(error.strerror or '').lower()}")
        case errno.E2BIG | errno.ERANGE | errno.EINVAL | errno.ENAMETOOLONG:
            return DataLoss(f"{what}: {(error.strerror or '').lower()}")
    return translate(what, OSError(error.errno, error.strerror))


def _has_room(target: int | str) -> bool:
    """ext4 says "no space left" of a value that is larger than a block, too."""
    state = os.fstatvfs(target) if isinstance(target, int) else os.statvfs(Path(target).parent)
    return state.f_bavail * state.f_frsize >= _ROOM


def is_opaque(folder: str) -> bool:
    """Whether what the layers below have there is hidden."""
    with translated("look at a layer:"):
        try:
            return os.getxattr(folder, OPAQUE) == b"y"
        except OSError as error:
            if error.errno not in {errno.ENODATA, errno.EOPNOTSUPP}:
                raise
            return False


def attributes(root: str, below: Sequence[str], implied: Iterable[bytes]) -> None:
    """Gives directories that had no entry of their own the attributes that they have in the layers below (`below`:
    their roots, the nearest first), as they would have been copied up from there. Idempotent."""
    with contextlib.ExitStack() as stack, translated("inherit attributes of directories:"):
        fds = []
        for folder in (root, *below):
            fds.append(os.open(folder, _READ_DIRECTORY | os.O_CLOEXEC))
            stack.callback(os.close, fds[-1])
        folders = (root, *below)
        shown = next((depth for depth, folder in enumerate(folders, 1) if is_opaque(folder)), len(folders))
        for path in implied:
            source = _find(fds[1:shown] if path else fds[1:], os.fsdecode(path) or ".")
            if source is not None:
                try:
                    _copy(source, fds[0], os.fsdecode(path) or ".")
                finally:
                    os.close(source)


def _find(layers: Sequence[int], path: str) -> int | None:
    for layer in layers:
        try:
            return confined.resolve(layer, path, _READ_DIRECTORY, restrict=RESOLVE_NO_SYMLINKS)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _REPLACED:
                raise
            return None  # hidden there: what lies further below is another directory
    return None


def _copy(source: int, root: int, path: str) -> None:
    state = os.fstat(source)
    try:
        fd = confined.resolve(root, path, _READ_DIRECTORY, restrict=RESOLVE_NO_SYMLINKS)
    except OSError as error:
        if error.errno not in _REPLACED:
            raise
        return  # by a later entry of the same archive
    try:
        os.fchown(fd, state.st_uid, state.st_gid)
        os.fchmod(fd, stat.S_IMODE(state.st_mode))
        set_xattrs(fd, {name: os.getxattr(source, name) for name in os.listxattr(source)})
        os.utime(fd, ns=(state.st_mtime_ns, state.st_mtime_ns))
    finally:
        os.close(fd)
