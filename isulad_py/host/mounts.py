"""Mounting and unmounting. Synchronous: callers on the loop go through `host.blocking`."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isulad_py.host import libc, threads
from isulad_py.host.failures import translate, translated

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_SYNCHRONOUS: Final = 0x10
MS_REMOUNT: Final = 0x20
MS_NOSYMFOLLOW: Final = 0x100
MS_NOATIME: Final = 0x400
MS_NODIRATIME: Final = 0x800
MS_BIND: Final = 0x1000
MS_MOVE: Final = 0x2000
MS_REC: Final = 0x4000
MS_UNBINDABLE: Final = 0x20000
MS_PRIVATE: Final = 0x40000
MS_SLAVE: Final = 0x80000
MS_SHARED: Final = 0x100000
MS_RELATIME: Final = 0x200000
MS_STRICTATIME: Final = 0x1000000

MNT_DETACH: Final = 0x2
UMOUNT_NOFOLLOW: Final = 0x8

MAX_STACKED: Final = 64
"""Mounts on one point that `unmount` takes away; more than that is somebody's mistake."""

AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
AT_RECURSIVE: Final = 0x8000
OPEN_TREE_CLONE: Final = 0x1
OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4
FSOPEN_CLOEXEC: Final = 0x1
FSMOUNT_CLOEXEC: Final = 0x1
FSCONFIG_SET_FLAG: Final = 0
FSCONFIG_SET_STRING: Final = 1
FSCONFIG_CMD_CREATE: Final = 6
MOUNT_ATTR_RDONLY: Final = 0x1
MOUNT_ATTR_NOSUID: Final = 0x2
MOUNT_ATTR_NODEV: Final = 0x4
MOUNT_ATTR_NOEXEC: Final = 0x8
MOUNT_ATTR_IDMAP: Final = 0x100000


def mount(source: str, target: str, fstype: str = "", flags: int = 0, data: str = "", *, cwd: str = "") -> None:
    """mount(2). With `cwd`, relative paths in `source`, `target` and `data` start there: many overlay layers fit into
    the one page that `data` may take only by short names. The daemon's own working directory never changes.

    Raises HostFailure or ResourceExhausted naming the target.
    """
    with translated(f"mount {fstype or 'bind'}"):
        if not cwd:
            libc.mount(source, target, fstype, flags, data)
            return

        def there() -> None:
            libc.unshare(libc.CLONE_FS)
            os.chdir(cwd)
            libc.mount(source, target, fstype, flags, data)

        threads.run_in_fresh_thread(there, name="mount")


def bind(source: str, target: str, *, readonly: bool = False, recursive: bool = False) -> None:
    """A bind mount; with `readonly`, of this one mount only (a bind mount takes its flags on a remount)."""
    mount(source, target, flags=MS_BIND | (MS_REC if recursive else 0))
    if readonly:
        try:
            mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
        except BaseException:
            unmount(target)
            raise


def unmount(target: str, *, detach: bool = True) -> None:
    """Takes away everything that is mounted at `target`. Idempotent: not mounted, or not there, is success.

    Never follows a symbolic link. `detach` is lazy: a busy mount disappears from the tree at once.
    """
    flags = UMOUNT_NOFOLLOW | (MNT_DETACH if detach else 0)
    for _ in range(MAX_STACKED):
        try:
            libc.umount2(target, flags)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                return
            # EINVAL is "not a mount point", but also "locked": ask which.
            if error.errno == errno.EINVAL and not is_mountpoint(target):
                return
            raise translate("unmount", error) from error


def unmount_under(path: str) -> None:
    """Unmounts everything at and below `path`, deepest first. Idempotent."""
    for point in mountpoints_under(path):
        unmount(point)


def is_mountpoint(path: str) -> bool:
    """Whether something is mounted exactly at `path`; also bind mounts of files. False where it does not exist."""
    try:
        return libc.is_mount_root(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return False
        raise translate("inspect", error) from error


def mountpoints_under(path: str) -> list[str]:
    """Every mount point at or below `path`, latest mount first: the order in which they can be unmounted."""
    with translated("read the mount table"):
        text = Path("/proc/self/mountinfo").read_bytes()
    # mountinfo holds resolved paths; the caller's may have links in it (/var/run).
    return parse_mountpoints(text, os.path.realpath(path))


def parse_mountpoints(mountinfo: bytes, root: str) -> list[str]:
    """Mount points at or below `root` in the text of a mountinfo file (proc(5)), latest first."""
    prefix = "/" if root == "/" else root + "/"
    points: list[str] = []
    for line in mountinfo.splitlines():
        fields = line.split(b" ", 5)
        if len(fields) < 6:
            continue
        point = unescape(fields[4])
        if point == root or point.startswith(prefix):
            points.append(point)
    points.reverse()
    return points


def peers(path: str) -> frozenset[str]:
    """Which news of mounts the mount takes part in that `path`, without links, lies on: "shared" where it tells and is
    told, "master" where it is told only (mount_namespaces(7)); none where it is private."""
    with translated("read the mount table"):
        text = Path("/proc/self/mountinfo").read_bytes()
    return parse_peers(text, path)


def parse_peers(mountinfo: bytes, path: str) -> frozenset[str]:
    """As `peers`, from the text of a mountinfo file (proc(5))."""
    best, found = "", frozenset[str]()
    for line in mountinfo.splitlines():
        before, dash, _ = line.partition(b" - ")
        fields = before.split(b" ")
        point = unescape(fields[4]) if dash and len(fields) > 5 else ""
        # Of two on one point the later one lies above.
        if point and len(point) >= len(best) and f"{path}/".startswith(point.rstrip("/") + "/"):
            best, found = point, frozenset(field.decode().partition(":")[0] for field in fields[6:])
    return found


_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")


def unescape(field: bytes) -> str:
    """A field of mountinfo: blank, tab, newline and backslash are written as octal escapes."""
    if b"\\" in field:
        field = _ESCAPE.sub(lambda match: bytes((int(match[1], 8) & 0xFF,)), field)
    return os.fsdecode(field)


def clone_tree(path: str, *, recursive: bool = False) -> int:
    """A descriptor of a detached copy of the mount at `path`, for `set_attributes` and `attach`."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0)
    with translated("clone the mount at"):
        return libc.open_tree(AT_FDCWD, path, flags)


def new_filesystem(fstype: str, options: list[tuple[str, str]], attributes: int = 0) -> int:
    """A descriptor of a new detached mount, for `attach`; an option with an empty value is a flag. Options may repeat
    (`lowerdir+`), and have no common limit of one page."""
    with contextlib.ExitStack() as stack, translated(f"make a {fstype} mount"):
        fs = libc.fsopen(fstype, FSOPEN_CLOEXEC)
        stack.callback(os.close, fs)
        for key, value in options:
            libc.fsconfig(fs, FSCONFIG_SET_STRING if value else FSCONFIG_SET_FLAG, key, value or None)
        libc.fsconfig(fs, FSCONFIG_CMD_CREATE, None, None)
        return libc.fsmount(fs, FSMOUNT_CLOEXEC, attributes)


def set_attributes(mount_fd: int, attributes: int, *, recursive: bool = False, userns_fd: int = -1) -> None:
    """Sets MOUNT_ATTR_* of a detached mount; `userns_fd` with MOUNT_ATTR_IDMAP maps its owners."""
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    with translated("set mount attributes"):
        libc.mount_setattr(mount_fd, "", flags, set_=attributes, userns_fd=max(userns_fd, 0))


def make_private(mount_fd: int) -> None:
    """A detached mount with all below it: what is mounted and unmounted there stays there."""
    with translated("make a mount private"):
        libc.mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, propagation=MS_PRIVATE)


@contextlib.contextmanager
def mapped(source: str, target: str, userns_path: str) -> Iterator[None]:
    """Inside, the directory `source` is also at `target`, read-only, where its owners are those that the user namespace
    at `userns_path` gives them. Raises HostFailure where the kernel or the file system cannot do that."""
    with contextlib.ExitStack() as stack:
        with translated("open"):
            userns_fd = os.open(userns_path, os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, userns_fd)
        clone = clone_tree(source)
        stack.callback(os.close, clone)
        with translated(f"map the owners of {source}:"):
            # Private: in one group with the mount it is a copy of, its end would be that of all mounts below.
            attributes = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY
            libc.mount_setattr(clone, "", AT_EMPTY_PATH, set_=attributes, propagation=MS_PRIVATE, userns_fd=userns_fd)
        attach(clone, target)
        stack.callback(unmount, target)
        yield


def attach(mount_fd: int, target: str) -> None:
    """Puts a detached mount at `target`. The descriptor stays the caller's to close."""
    with translated("attach a mount at"):
        libc.move_mount(mount_fd, target, MOVE_MOUNT_F_EMPTY_PATH)
