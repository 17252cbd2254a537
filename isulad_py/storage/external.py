"""Roots that are on this host already: a directory, or a file system on a block device (iSulad's external rootfs)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.host import mounts
from isulad_py.host.failures import translate, translated
from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput, NotFound, Unsupported

FIELD: Final = "external_rootfs"
_FIRST: Final = ("ext4", "xfs", "btrfs", "erofs", "squashfs")
"""Tried also where the kernel has not loaded them yet."""
_ANOTHER: Final = frozenset({errno.EINVAL, errno.ENODEV, errno.EUCLEAN, errno.ENOTBLK})
"""The device has another file system, or the kernel does not know this one."""


class ExternalRoot(Struct, frozen=True, kw_only=True):
    path: str
    """Resolved."""
    device: bool = False


def look_at(path: str, *, kept: Iterable[str]) -> ExternalRoot:
    """Synchronous. `kept` are the engine's own directories. InvalidInput for a path that cannot be a container's root,
    NotFound where nothing is, FailedPrecondition for a device that is in use."""
    if not path.startswith("/") or "\0" in path:
        raise InvalidInput(f"{FIELD}: {path[:200]!r} is not an absolute path")
    try:
        resolved = str(Path(path).resolve(strict=True))
        mode = Path(resolved).stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{FIELD}: {path} does not exist") from error
    except RuntimeError as error:
        raise InvalidInput(f"{FIELD}: {path} is a loop of links") from error
    except OSError as error:
        raise translate(f"{FIELD}:", error) from error
    if stat.S_ISBLK(mode):
        _check_unused(resolved)
        return ExternalRoot(path=resolved, device=True)
    if not stat.S_ISDIR(mode):
        raise InvalidInput(f"{FIELD}: {path} is neither a directory nor a block device")
    if resolved == "/" or any(overlap(resolved, str(Path(folder).resolve())) for folder in kept):
        raise InvalidInput(f"{FIELD}: {path} holds, or is part of, what this engine keeps")
    return ExternalRoot(path=resolved)


def overlap(one: str, other: str) -> bool:
    """Whether they are the same directory, or one lies in the other."""
    return Path(one).is_relative_to(other) or Path(other).is_relative_to(one)


def _check_unused(device: str) -> None:
    """The kernel lets nobody have a device for himself on which a file system is mounted (open(2), O_EXCL)."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise FailedPrecondition(f"{FIELD}: {device} is in use") from error
        raise translate(f"{FIELD}: open", error) from error


def mount(root: ExternalRoot, target: str) -> None:
    """Synchronous. Raises Unsupported for a device without a file system that can be mounted, else as `host.mounts`."""
    if root.device:
        _mount_device(root.path, target)
    else:
        _mount_directory(root.path, target)


def _mount_directory(path: str, target: str) -> None:
    """With all that is mounted in it. Private before it can be seen: what is unmounted here when the container goes
    must not be unmounted there (mount_namespaces(7), shared subtrees)."""
    tree = mounts.clone_tree(path, recursive=True)
    try:
        mounts.make_private(tree)
        mounts.attach(tree, target)
    finally:
        os.close(tree)


def _mount_device(device: str, target: str) -> None:
    for fstype in _filesystems():
        try:
            mounts.mount(device, target, fstype)
        except HostFailure as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _ANOTHER:
                raise
        else:
            return
    raise Unsupported(f"{FIELD}: {device} has no file system that this kernel can mount")


def _filesystems() -> list[str]:
    """Those that want a device (proc(5), filesystems)."""
    with translated("read the kernel's file systems"):
        lines = Path("/proc/filesystems").read_text(encoding="ascii").splitlines()
    known = [line.strip() for line in lines if not line.startswith("nodev")]
    return list(dict.fromkeys((*_FIRST, *known)))
