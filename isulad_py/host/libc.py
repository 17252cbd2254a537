"""System calls that the standard library lacks. Every function raises OSError with errno and path; nothing else.

Numbers above 423 are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
"""ctypes gives up the interpreter lock for the length of each call."""

SYS_OPEN_TREE: Final = 428
SYS_MOVE_MOUNT: Final = 429
SYS_FSOPEN: Final = 430
SYS_FSCONFIG: Final = 431
SYS_FSMOUNT: Final = 432
SYS_OPENAT2: Final = 437
SYS_MOUNT_SETATTR: Final = 442
SYS_QUOTACTL_FD: Final = 443

CLONE_FS: Final = 0x00000200
CLONE_NEWTIME: Final = 0x00000080
CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

_PR_SET_CHILD_SUBREAPER: Final = 36
_STATX_ATTR_MOUNT_ROOT: Final = 0x2000
_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _Statx(ctypes.Structure):
    """The head of struct statx; the kernel writes 256 bytes."""

    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("blksize", ctypes.c_uint32),
        ("attributes", ctypes.c_uint64),
        ("_head", ctypes.c_uint8 * 40),
        ("attributes_mask", ctypes.c_uint64),
        ("_rest", ctypes.c_uint8 * 192),
    )


def _check(result: int, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def _encoded(text: str) -> bytes:
    if "\0" in text:
        raise OSError(22, "embedded NUL", text.replace("\0", "\\0"))
    return os.fsencode(text)


def _syscall(
    number: int, *args: int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None, path: str | None = None
) -> int:
    """Every argument goes as a full register, which variadic `syscall` expects."""
    values: list[object] = []
    for arg in args:
        if arg is None:
            values.append(ctypes.c_void_p(None))
        elif isinstance(arg, bytes):
            values.append(ctypes.c_char_p(arg))
        elif isinstance(arg, ctypes.Structure | ctypes.Array):
            values.append(ctypes.byref(arg))
        else:
            values.append(ctypes.c_long(arg))
    return _check(_LIBC.syscall(ctypes.c_long(number), *values), path)


def mount(source: str, target: str, fstype: str, flags: int, data: str) -> None:
    _check(
        _LIBC.mount(
            _encoded(source), _encoded(target), _encoded(fstype) or None, ctypes.c_ulong(flags), _encoded(data) or None
        ),
        target,
    )


def umount2(target: str, flags: int) -> None:
    _check(_LIBC.umount2(_encoded(target), ctypes.c_int(flags)), target)


def syncfs(fd: int) -> None:
    """Writes everything of the file system that `fd` is on to its disk."""
    _check(_LIBC.syncfs(ctypes.c_int(fd)))


def quotactl_fd(fd: int, command: int, identifier: int, data: bytearray) -> None:
    """Of the file system that `fd` is on. `data` goes in and comes back."""
    _syscall(SYS_QUOTACTL_FD, fd, command, identifier, (ctypes.c_char * len(data)).from_buffer(data))


def quotactl(device: str, command: int, identifier: int, data: bytearray) -> None:
    """As `quotactl_fd`, which Linux has from 5.14 on, of the file system on `device`."""
    memory = (ctypes.c_char * len(data)).from_buffer(data)
    _check(_LIBC.quotactl(ctypes.c_int(command), _encoded(device), ctypes.c_int(identifier), memory), device)


def unshare(flags: int) -> None:
    """Of the calling thread only."""
    _check(_LIBC.unshare(ctypes.c_int(flags)))


def setns(fd: int, kind: int) -> None:
    """Of the calling thread only."""
    _check(_LIBC.setns(ctypes.c_int(fd), ctypes.c_int(kind)))


def set_child_subreaper() -> None:
    """Of the whole process, once and for all."""
    _check(_LIBC.prctl(ctypes.c_int(_PR_SET_CHILD_SUBREAPER), *[ctypes.c_ulong(value) for value in (1, 0, 0, 0)]))


def openat2(directory_fd: int, path: str, flags: int, *, mode: int = 0, resolve: int = 0) -> int:
    """A descriptor (close-on-exec) of `path` below `directory_fd`, resolved as `resolve` (RESOLVE_*) says."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    return _syscall(SYS_OPENAT2, directory_fd, _encoded(path), how, ctypes.sizeof(how), path=path)


def open_tree(directory_fd: int, path: str, flags: int) -> int:
    return _syscall(SYS_OPEN_TREE, directory_fd, _encoded(path), flags, path=path)


def move_mount(from_fd: int, target: str, flags: int) -> None:
    """Attaches the detached mount behind `from_fd` at `target`."""
    _syscall(SYS_MOVE_MOUNT, from_fd, b"", _AT_FDCWD, _encoded(target), flags, path=target)


def fsopen(fstype: str, flags: int) -> int:
    return _syscall(SYS_FSOPEN, _encoded(fstype), flags, path=fstype)


def fsconfig(fs_fd: int, command: int, key: str | None, value: str | None) -> None:
    _syscall(
        SYS_FSCONFIG,
        fs_fd,
        command,
        None if key is None else _encoded(key),
        None if value is None else _encoded(value),
        0,
        path=key,
    )


def fsmount(fs_fd: int, flags: int, attributes: int) -> int:
    return _syscall(SYS_FSMOUNT, fs_fd, flags, attributes)


def mount_setattr(
    directory_fd: int, path: str, flags: int, *, set_: int = 0, propagation: int = 0, userns_fd: int = 0
) -> None:
    attributes = _MountAttr(set_, 0, propagation, userns_fd)
    _syscall(SYS_MOUNT_SETATTR, directory_fd, _encoded(path), flags, attributes, ctypes.sizeof(attributes), path=path)


def is_mount_root(path: str) -> bool:
    """Whether something is mounted exactly at `path` (not followed); OSError where it does not exist."""
    buffer = _Statx()
    _check(_LIBC.statx(_AT_FDCWD, _encoded(path), _AT_SYMLINK_NOFOLLOW, 0, ctypes.byref(buffer)), path)
    return bool(buffer.attributes & _STATX_ATTR_MOUNT_ROOT)


def inotify_init() -> int:
    """A descriptor that does not block."""
    return _check(_LIBC.inotify_init1(ctypes.c_int(os.O_NONBLOCK | os.O_CLOEXEC)))


def inotify_add_watch(fd: int, path: str, mask: int) -> int:
    """The watch's number: the same again for the same inode."""
    return _check(_LIBC.inotify_add_watch(ctypes.c_int(fd), _encoded(path), ctypes.c_uint32(mask)), path)


def inotify_rm_watch(fd: int, watch: int) -> None:
    _check(_LIBC.inotify_rm_watch(ctypes.c_int(fd), ctypes.c_int(watch)))
