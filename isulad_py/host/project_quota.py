"""Project quotas: what a directory tree takes, counted and bounded by the file system itself. Synchronous.

A project is a number on inodes that what is made below them inherits (ioctl_xfs_fsgetxattr(2)). ext4 and XFS keep, for
each, blocks and inodes used and their limits (quotactl(2)).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from isulad_py.host import block_devices, libc
from isulad_py.host.failures import translated

_FSGETXATTR: Final = 0x801C581F
_FSSETXATTR: Final = 0x401C5820
_FSXATTR: Final = struct.Struct("=5I8x")
"""struct fsxattr (linux/fs.h): flags, extent size, extents, project."""
_PROJINHERIT: Final = 0x200

_PROJECTS: Final = 2
_GET_LIMITS, _SET_LIMITS, _GET_STATE = ((ord("X") << 8) + number for number in (3, 4, 5))
_DISK_QUOTA: Final = struct.Struct("=bbHI6Q56x")
"""struct fs_disk_quota (linux/dqblk_xfs.h), up to the timers."""
_HARD_BLOCKS: Final = 1 << 3
_BLOCK: Final = 512
"""Unit of its block counts."""
_STATE_BYTES: Final = 128
_STATE_FLAGS: Final = struct.Struct("=2xH")
"""struct fs_quota_stat: version, padding, flags."""
_ACCOUNTED: Final = 1 << 4
_ENFORCED: Final = 1 << 5

_NONE_HERE: Final = frozenset(
    {
        errno.ENOSYS,
        errno.ENOTTY,
        errno.EOPNOTSUPP,
        errno.EINVAL,
        errno.ESRCH,
        errno.ENODEV,
        errno.ENOENT,
        errno.ENOTBLK,
        errno.EPERM,
    }
)
"""A kernel, a file system or a mount without project quotas."""
_NEVER_USED: Final = frozenset({errno.ENOENT, errno.ESRCH})


class QuotaState(NamedTuple):
    accounted: bool
    enforced: bool


class QuotaUsage(NamedTuple):
    used_bytes: int
    inodes: int
    limit_bytes: int
    """0 is none."""


class ProjectQuotas:
    """Of the file system that `root` is on. Errors are those of `failures`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def state(self) -> QuotaState:
        data = bytearray(_STATE_BYTES)
        with translated("look for quotas on"):
            try:
                _quotactl(self._root, _GET_STATE, 0, data)
            except OSError as error:
                if error.errno in _NONE_HERE:
                    return QuotaState(accounted=False, enforced=False)
                raise
        flags = _STATE_FLAGS.unpack_from(data)[0]
        return QuotaState(accounted=bool(flags & _ACCOUNTED), enforced=bool(flags & _ENFORCED))

    def project_of(self, directory: str) -> int:
        """0 where it has none."""
        with translated("read the project of"), _opened(directory) as fd:
            return int(_attributes(fd)[3])

    def assign(self, directory: str, project: int) -> None:
        """Of an empty directory: all that is made in it from here on counts."""
        with translated("give a project to"), _opened(directory) as fd:
            flags, extent, extents, _, copy_extent = _attributes(fd)
            fcntl.ioctl(fd, _FSSETXATTR, _FSXATTR.pack(flags | _PROJINHERIT, extent, extents, project, copy_extent))

    def usage(self, project: int) -> QuotaUsage:
        """Zeros for a project that nothing has."""
        data = bytearray(_DISK_QUOTA.size)
        with translated("read a quota on"):
            try:
                _quotactl(self._root, _GET_LIMITS, project, data)
            except OSError as error:
                if error.errno in _NEVER_USED:
                    return QuotaUsage(used_bytes=0, inodes=0, limit_bytes=0)
                raise
        _, _, _, _, hard_blocks, _, _, _, blocks, inodes = _DISK_QUOTA.unpack(data)
        return QuotaUsage(used_bytes=blocks * _BLOCK, inodes=inodes, limit_bytes=hard_blocks * _BLOCK)

    def limit(self, project: int, limit_bytes: int) -> None:
        """Writes beyond it fail with EDQUOT (ext4) or ENOSPC (XFS). 0 lifts it."""
        blocks = -(-limit_bytes // _BLOCK)
        data = bytearray(_DISK_QUOTA.pack(1, _PROJECTS, _HARD_BLOCKS, project, blocks, 0, 0, 0, 0, 0))
        with translated("set a quota on"):
            _quotactl(self._root, _SET_LIMITS, project, data)


def _attributes(fd: int) -> tuple[int, ...]:
    return _FSXATTR.unpack(fcntl.ioctl(fd, _FSGETXATTR, bytes(_FSXATTR.size)))


def _quotactl(path: str, command: int, project: int, data: bytearray) -> None:
    command = command << 8 | _PROJECTS
    with _opened(path) as fd:
        try:
            libc.quotactl_fd(fd, command, project, data)
        except OSError as error:
            if error.errno != errno.ENOSYS or not (device := block_devices.device_under(path)).startswith("/dev/"):
                raise
            libc.quotactl(device, command, project, data)


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
