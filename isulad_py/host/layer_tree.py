"""A directory tree written from an untrusted archive: an image layer in overlay form. Synchronous, for one thread.

Nothing outside the root is ever written, linked or changed: a parent directory is resolved by the kernel as if the
root were the root directory (openat2, RESOLVE_IN_ROOT, as containerd and docker resolve it), and the last part of a
name is only ever created anew, without following a link. The root must be reachable by nobody else meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import Final, Protocol

from msgspec import Struct

from isulad_py.host import libc, trees
from isulad_py.host.confined import RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS
from isulad_py.host.failures import EXHAUSTED, translate
from isulad_py.host.inherit import set_xattrs
from isulad_py.model.errors import DataLoss, EngineError

OPAQUE: Final = "trusted.overlay.opaque"
MAX_OPEN: Final = 64
"""Parent directories held open: archives come sorted by directory, so that nearly every entry finds its parent here."""
MAX_OWNER: Final = (1 << 32) - 2
"""-1 would mean "leave as it is" (chown(2))."""
_BLOCK: Final = 4096


class Attributes(Protocol):
    """What every entry of an archive has."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    xattrs: dict[str, bytes]


class TreeFacts(Struct, frozen=True, kw_only=True):
    used_bytes: int
    """About what it takes on disk, in whole blocks."""
    inodes: int
    implied: tuple[bytes, ...]
    """Directories that had no entry of their own, nearest to the root first: their attributes are those of the layer
    below (`host.inherit`). The root is the empty name."""


class LayerTree:
    """Raises DataLoss for an entry that no honest archive has, ResourceExhausted when the disk is full or a limit is
    reached, HostFailure for what the kernel refuses otherwise; each names the entry."""

    def __init__(self, root: str) -> None:
        """`root` is an empty directory."""
        self._root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._open: dict[bytes, int] = {}
        self._retired: list[int] = []
        self._times: dict[bytes, int] = {}
        self._implied: dict[bytes, None] = {b"": None}
        self._used_bytes = _BLOCK
        self._inodes = 1

    def close(self) -> None:
        """Idempotent."""
        self._forget()
        self._close_retired()
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1

    def directory(self, name: bytes, attributes: Attributes) -> None:
        """One that exists keeps its contents and takes the attributes."""
        self._close_retired()
        path, parent, base = _split(name)
        try:
            if not base:
                self._dress_directory(self._root_fd, path, attributes)
                return
            fd = self._make_directory(self._parent(parent), base)
            self._remember(path, fd)
            self._dress_directory(fd, path, attributes)
        except OSError as error:
            raise _translate(name, error) from error

    def file(
        self,
        name: bytes,
        attributes: Attributes,
        data: Iterable[memoryview],
        *,
        size: int,
        segments: Iterable[tuple[int, int]] | None = None,
    ) -> None:
        """`segments` are the offset and length of each piece of data of a sparse file."""
        _, parent, base = self._named(name)
        try:
            fd = self._create(self._parent(parent), base)
            try:
                if segments is None:
                    for piece in data:
                        written = os.write(fd, piece)
                        while written < len(piece):
                            written += os.write(fd, piece[written:])
                    self._used_bytes += -(-size // _BLOCK) * _BLOCK
                else:
                    self._used_bytes += _write_sparse(fd, data, size, segments)
                os.fchown(fd, *_owner(attributes))
                os.fchmod(fd, attributes.mode)  # after chown, which takes away setuid
                if attributes.xattrs:
                    set_xattrs(fd, attributes.xattrs)  # after the data: a write takes away capabilities
                os.utime(fd, ns=(attributes.mtime_ns, attributes.mtime_ns))
            finally:
                os.close(fd)
        except OSError as error:
            raise _translate(name, error) from error
        self._inodes += 1

    def symlink(self, name: bytes, attributes: Attributes, target: bytes) -> None:
        """`target` is stored as it is."""
        _, parent, base = self._named(name)
        try:
            fd = self._parent(parent)
            try:
                os.symlink(target, base, dir_fd=fd)
            except FileExistsError:
                self._remove(fd, base)
                os.symlink(target, base, dir_fd=fd)
            self._dress_node(fd, base, attributes)
        except (OSError, ValueError) as error:
            raise _translate(name, error) from error

    def hardlink(self, name: bytes, target: bytes) -> None:
        """To another entry of this layer, of which it has the attributes."""
        _, parent, base = self._named(name)
        _, target_parent, target_base = self._named(target)
        if (parent, base) == (target_parent, target_base):
            return
        try:
            fd, target_fd = self._parent(parent), self._existing(target_parent)
            try:
                os.link(target_base, base, src_dir_fd=target_fd, dst_dir_fd=fd, follow_symlinks=False)
            except FileExistsError:
                if _inode(target_fd, target_base) == _inode(fd, base):
                    return
                self._remove(fd, base)
                os.link(target_base, base, src_dir_fd=target_fd, dst_dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError as error:
            raise DataLoss(f"entry {_shown(name)}: link to {_shown(target)}, which is not in this layer") from error
        except PermissionError as error:
            raise DataLoss(f"entry {_shown(name)}: link to {_shown(target)}, which cannot have links") from error
        except OSError as error:
            raise _translate(name, error) from error

    def node(self, name: bytes, attributes: Attributes, kind: int, device: tuple[int, int] = (0, 0)) -> None:
        """A device or a fifo; `kind` is stat's S_IF*."""
        _, parent, base = self._named(name)
        try:
            fd = self._parent(parent)
            number = os.makedev(*device)
            try:
                os.mknod(base, kind | 0o600, number, dir_fd=fd)
            except FileExistsError:
                self._remove(fd, base)
                os.mknod(base, kind | 0o600, number, dir_fd=fd)
            self._dress_node(fd, base, attributes)
            os.chmod(base, attributes.mode, dir_fd=fd)
        except (OSError, OverflowError) as error:
            raise _translate(name, error) from error

    def whiteout(self, name: bytes) -> None:
        """Hides `name` of the layers below (OCI image spec, layer.md); what this very layer brings stays."""
        _, parent, base = self._named(name)
        try:
            fd = self._parent(parent)
            try:
                os.mknod(base, stat.S_IFCHR, 0, dir_fd=fd)
                self._inodes += 1
            except FileExistsError:
                if stat.S_ISDIR(os.lstat(base, dir_fd=fd).st_mode):
                    self.opaque(name)
        except OSError as error:
            raise _translate(name, error) from error

    def opaque(self, name: bytes) -> None:
        """Hides everything that the layers below have in the directory `name`."""
        path, _, _ = _split(name)
        try:
            os.setxattr(self._parent(path) if path else self._root_fd, OPAQUE, b"y")
        except OSError as error:
            raise _translate(name, error) from error

    def finish(self) -> TreeFacts:
        """Sets the times of the directories, which every entry in them has changed."""
        for path, mtime_ns in self._times.items():
            try:
                fd = self._open_directory(path or b".", os.O_NOFOLLOW)
                try:
                    os.utime(fd, ns=(mtime_ns, mtime_ns))
                finally:
                    os.close(fd)
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:  # replaced by a later entry
                    raise _translate(path, error) from error
        return TreeFacts(
            used_bytes=self._used_bytes,
            inodes=self._inodes,
            implied=tuple(sorted(self._implied, key=lambda path: path.count(b"/") + bool(path))),
        )

    def free_bytes(self) -> int:
        """What is left on the file system for root."""
        state = os.fstatvfs(self._root_fd)
        return state.f_bfree * state.f_frsize

    # Parents

    def _named(self, name: bytes) -> tuple[bytes, bytes, bytes]:
        self._close_retired()
        split = _split(name)
        if not split[2]:
            raise DataLoss(f"entry {_shown(name)}: the root of a layer can only be a directory")
        return split

    def _parent(self, path: bytes) -> int:
        """The directory `path`, made with its missing parents where it is not there."""
        fd = self._open.get(path)
        if fd is not None:
            return fd
        try:
            return self._existing(path)
        except FileNotFoundError:
            pass
        done, fd = b"", self._root_fd
        for part in path.split(b"/"):
            above, done = fd, done + b"/" + part if done else part
            try:
                fd = self._existing(done)
            except FileNotFoundError:
                self._make_implied(above, part, done)
                fd = self._open[done]
        return fd

    def _existing(self, path: bytes) -> int:
        if not path:
            return self._root_fd
        fd = self._open.get(path)
        if fd is None:
            fd = self._remember(path, self._open_directory(path, 0))
        return fd

    def _open_directory(self, path: bytes, flags: int) -> int:
        resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
        return libc.openat2(self._root_fd, os.fsdecode(path), os.O_RDONLY | os.O_DIRECTORY | flags, resolve=resolve)

    def _make_implied(self, above: int, part: bytes, path: bytes) -> None:
        if _inode(above, part) is not None:
            raise DataLoss(f"entry below {_shown(path)}, which is a link to nothing")
        self._remember(path, self._make_directory(above, part))
        self._implied[path] = None

    def _remember(self, path: bytes, fd: int) -> int:
        former = self._open.pop(path, None)
        if former is not None:
            self._retired.append(former)
        elif len(self._open) >= MAX_OPEN:
            self._retired.append(self._open.pop(next(iter(self._open))))
        self._open[path] = fd
        return fd

    def _forget(self) -> None:
        """What is open may no longer be what its path means. The entry at hand may still be using it."""
        self._retired.extend(self._open.values())
        self._open.clear()

    def _close_retired(self) -> None:
        while self._retired:
            os.close(self._retired.pop())

    # Entries

    def _make_directory(self, parent_fd: int, base: bytes) -> int:
        """A descriptor of the directory, made or found."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        hiding = False
        try:
            os.mkdir(base, 0o700, dir_fd=parent_fd)
        except FileExistsError:
            if stat.S_ISDIR(os.lstat(base, dir_fd=parent_fd).st_mode):
                return os.open(base, flags, dir_fd=parent_fd)
            hiding = self._remove(parent_fd, base)
            os.mkdir(base, 0o700, dir_fd=parent_fd)
        fd = os.open(base, flags, dir_fd=parent_fd)
        os.fchmod(fd, 0o755)
        if hiding:
            os.setxattr(fd, OPAQUE, b"y")
        self._inodes += 1
        self._used_bytes += _BLOCK
        return fd

    def _create(self, parent_fd: int, base: bytes) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(base, flags, 0o600, dir_fd=parent_fd)
        except FileExistsError:
            self._remove(parent_fd, base)
            return os.open(base, flags, 0o600, dir_fd=parent_fd)

    def _remove(self, parent_fd: int, base: bytes) -> bool:
        """Makes room for a later entry of the same name; tells whether a whiteout was there."""
        self._forget()
        state = os.lstat(base, dir_fd=parent_fd)
        if stat.S_ISDIR(state.st_mode):
            trees.remove_tree(f"/proc/self/fd/{parent_fd}/{os.fsdecode(base)}")
        else:
            os.unlink(base, dir_fd=parent_fd)
        return stat.S_ISCHR(state.st_mode) and state.st_rdev == 0

    def _dress_directory(self, fd: int, path: bytes, attributes: Attributes) -> None:
        os.fchown(fd, *_owner(attributes))
        os.fchmod(fd, attributes.mode)
        set_xattrs(fd, attributes.xattrs)
        self._times[path] = attributes.mtime_ns
        self._implied.pop(path, None)

    def _dress_node(self, parent_fd: int, base: bytes, attributes: Attributes) -> None:
        uid, gid = _owner(attributes)
        os.chown(base, uid, gid, dir_fd=parent_fd, follow_symlinks=False)
        set_xattrs(f"/proc/self/fd/{parent_fd}/{os.fsdecode(base)}", attributes.xattrs)
        times = (attributes.mtime_ns, attributes.mtime_ns)
        os.utime(base, ns=times, dir_fd=parent_fd, follow_symlinks=False)
        self._inodes += 1


def _split(name: bytes) -> tuple[bytes, bytes, bytes]:
    """The path below the root, its parent and its last part; empty for the root itself."""
    if b"\0" in name:
        raise DataLoss(f"entry {_shown(name)}: a name cannot hold a NUL")
    parts = [part for part in name.split(b"/") if part and part != b"."]
    if b".." in parts:
        parts = _climb(name, parts)
    if not parts:
        return b"", b"", b""
    base = parts.pop()
    parent = b"/".join(parts)
    return (parent + b"/" + base if parent else base), parent, base


def _climb(name: bytes, parts: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    for part in parts:
        if part != b"..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            raise DataLoss(f"entry {_shown(name)} climbs out of the layer")
    return kept


def _owner(attributes: Attributes) -> tuple[int, int]:
    uid, gid = attributes.uid, attributes.gid
    if not (0 <= uid <= MAX_OWNER and 0 <= gid <= MAX_OWNER):
        raise OSError(errno.EINVAL, f"owner {uid}:{gid} is out of range")
    return uid, gid


def _write_sparse(fd: int, data: Iterable[memoryview], size: int, segments: Iterable[tuple[int, int]]) -> int:
    """Gives about what it takes on disk."""
    pieces = iter(data)
    piece = memoryview(b"")
    used = 0
    for start, length in segments:
        offset, end = start, start + length
        used += -(-length // _BLOCK) * _BLOCK
        while offset < end:
            if not piece:
                piece = next(pieces)
            written = os.pwrite(fd, piece[: end - offset], offset)
            piece = piece[written:]
            offset += written
    os.ftruncate(fd, size)
    return used


def _inode(parent_fd: int, base: bytes) -> tuple[int, int] | None:
    try:
        state = os.lstat(base, dir_fd=parent_fd)
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino


_HOSTILE: Final = frozenset(
    {
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.EINVAL,
        errno.EISDIR,
        errno.ENOENT,
        errno.EXDEV,
        errno.EOVERFLOW,
        errno.EFBIG,
        errno.ERANGE,
    }
)
"""What only a strange archive brings about, since nobody else touches the tree."""


def _translate(name: bytes, error: Exception) -> EngineError:
    if not isinstance(error, OSError):
        return DataLoss(f"entry {_shown(name)}: {error}")
    if error.errno in _HOSTILE and error.errno not in EXHAUSTED:
        return DataLoss(f"entry {_shown(name)}: {(error.strerror or str(error)).lower()}")
    return translate(f"entry {_shown(name)}:", OSError(error.errno, error.strerror))


def _shown(name: bytes) -> str:
    return repr(name[:200])[1:]
