"""A directory tree written from an untrusted archive: an image layer in overlay form. Synchronous, for one thread.

Nothing outside the root is ever written, linked or changed: a parent directory is resolved as if the root were the
root directory (`host.parents`; so do containerd and docker), and the last part of a name is only ever created anew,
without following a link. The root must be reachable by nobody else meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

import structlog
from msgspec import Struct

from isulad_py.host import trees
from isulad_py.host.directory_times import DirectoryTimes
from isulad_py.host.disk_reserve import Growth
from isulad_py.host.facts import in_user_namespace
from isulad_py.host.failures import EXHAUSTED, translate
from isulad_py.host.inherit import OPAQUE, set_xattrs
from isulad_py.host.parents import DIRECTORY, Parents, is_whiteout
from isulad_py.model.errors import DataLoss, EngineError, ResourceExhausted, Unsupported

log = structlog.get_logger(__name__)

MAX_IMPLIED_BYTES: Final = 32 * 1024 * 1024
"""Of the paths of directories without an entry of their own, which are kept until the layer below is known..."""
IMPLIED_BYTES: Final = 64
"""...and for keeping each of them."""
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
    replaced: bytes = b""
    """The last part of the name of an entry with contents that a later one took the place of."""


class LayerTree:
    """Raises DataLoss for an entry that no honest archive has, ResourceExhausted when the disk is full or a limit is
    reached, Unsupported for what cannot be made here, HostFailure for what the kernel refuses otherwise; each names
    the entry. And whatever `grow` raises."""

    def __init__(self, root: str, *, grow: Growth, max_inodes: int) -> None:
        """`root` is an empty directory, in one that takes the tree's notes. `grow` is told of each entry and of each
        directory that is made for one: what an archive of a few bytes implies can be large."""
        self._grow = grow
        self._max_inodes = max_inodes
        self._used_bytes = _BLOCK
        self._inodes = 1
        self._implied: dict[int, bytes] = {}
        """By inode: an entry of their own may come under another name."""
        self._implied_bytes = 0
        self._root_implied = True
        self._replaced = b""
        self._parents = Parents(root, self._make_implied)
        try:
            self._times = DirectoryTimes(str(Path(root).parent))
        except BaseException:
            self._parents.close()
            raise

    def close(self) -> None:
        """Idempotent."""
        self._parents.close()
        self._times.close()

    def directory(self, name: bytes, attributes: Attributes) -> None:
        """One that exists keeps its contents and takes the attributes."""
        self._parents.close_retired()
        path, parent, base = _split(name)
        try:
            if not base:
                self._root_implied = False
                self._dress_directory(self._parents.root_fd, path, attributes)
                return
            fd = self._make_directory(self._parents.need(parent), base)
            self._parents.remember(path, fd)
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
            fd = self._create(self._parents.need(parent), base)
            try:
                if segments is None:
                    for piece in data:
                        self._grow(len(piece), 0)
                        written = os.write(fd, piece)
                        while written < len(piece):
                            written += os.write(fd, piece[written:])
                    self._used_bytes += -(-size // _BLOCK) * _BLOCK
                else:
                    self._used_bytes += _write_sparse(fd, data, size, segments, self._grow)
                os.fchown(fd, *_owner(attributes))
                os.fchmod(fd, attributes.mode)  # after chown, which takes away setuid
                if attributes.xattrs:
                    _set_xattrs(name, fd, attributes)  # after the data: a write takes away capabilities
                os.utime(fd, ns=(attributes.mtime_ns, attributes.mtime_ns))
            finally:
                os.close(fd)
        except OSError as error:
            raise _translate(name, error) from error

    def symlink(self, name: bytes, attributes: Attributes, target: bytes) -> None:
        """`target` is stored as it is."""
        _, parent, base = self._named(name)
        try:
            fd = self._parents.need(parent)
            self._count()
            try:
                os.symlink(target, base, dir_fd=fd)
            except FileExistsError:
                self._remove(fd, base)
                os.symlink(target, base, dir_fd=fd)
            self._dress_node(name, fd, base, attributes)
        except (OSError, ValueError) as error:
            raise _translate(name, error) from error

    def hardlink(self, name: bytes, attributes: Attributes, target: bytes) -> None:
        """To another entry of this layer. The attributes become those of both names, as containerd has it."""
        _, parent, base = self._named(name)
        _, target_parent, target_base = self._named(target)
        if (parent, base) == (target_parent, target_base):
            return
        try:
            self._grow(0, 0)
            target_fd = os.dup(self._parents.find(target_parent))
            try:
                fd = self._parents.need(parent)
                self._link(target_fd, target_base, fd, base)
            finally:
                os.close(target_fd)
        except FileNotFoundError as error:
            raise DataLoss(f"entry {_shown(name)}: link to {_shown(target)}, which is not in this layer") from error
        except PermissionError as error:
            raise DataLoss(f"entry {_shown(name)}: link to {_shown(target)}, which cannot have links") from error
        except OSError as error:
            raise _translate(name, error) from error
        try:
            self._dress_linked(name, fd, base, attributes)
        except OSError as error:
            raise _translate(name, error) from error

    def node(self, name: bytes, attributes: Attributes, kind: int, device: tuple[int, int] = (0, 0)) -> None:
        """A device or a fifo; `kind` is stat's S_IF*. In a user namespace, where nobody may make one, a device is left
        out, as containerd does; elsewhere Unsupported without CAP_MKNOD."""
        _, parent, base = self._named(name)
        try:
            fd = self._parents.need(parent)
            self._count()
            number = os.makedev(*device)
            if not self._make_node(fd, base, kind, number):
                log.warning("device left out: there is none in a user namespace", entry=_shown(name))
                return
            self._dress_node(name, fd, base, attributes)
            os.chmod(base, attributes.mode, dir_fd=fd)
        except (OSError, OverflowError) as error:
            raise _translate(name, error) from error

    def whiteout(self, name: bytes) -> None:
        """Hides `name` of the layers below (OCI image spec, layer.md); what this very layer brings stays."""
        _, parent, base = self._named(name)
        try:
            fd = self._parents.need(parent)
            try:
                os.mknod(base, stat.S_IFCHR, 0, dir_fd=fd)
                self._count()
            except FileExistsError:
                if stat.S_ISDIR(os.lstat(base, dir_fd=fd).st_mode):
                    self.opaque(name)
        except OSError as error:
            raise _translate(name, error) from error

    def opaque(self, name: bytes) -> None:
        """Hides everything that the layers below have in the directory `name`. Overlay overlooks it on the root of a
        layer: whoever mounts has to look (`inherit.is_opaque`)."""
        path, _, _ = _split(name)
        try:
            self._grow(0, 0)
            os.setxattr(self._parents.need(path), OPAQUE, b"y")
        except OSError as error:
            raise _translate(name, error) from error

    def finish(self) -> TreeFacts:
        """Sets the times of the directories, which every entry in them has changed."""
        for path, mtime_ns in self._times:
            self._parents.close_retired()
            self._grow(0, 0)
            try:
                self._set_time(path, mtime_ns)
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:  # replaced by a later entry
                    raise _translate(path, error) from error
        implied = sorted(self._implied.values(), key=lambda path: path.count(b"/"))
        return TreeFacts(
            used_bytes=self._used_bytes,
            inodes=self._inodes,
            replaced=self._replaced,
            implied=(b"", *implied) if self._root_implied else tuple(implied),
        )

    def _set_time(self, path: bytes, mtime_ns: int) -> None:
        if not path:
            os.utime(self._parents.root_fd, ns=(mtime_ns, mtime_ns))
            return
        _, parent, base = _split(path)
        fd = os.open(base, DIRECTORY | os.O_NOFOLLOW, dir_fd=self._parents.find(parent))
        try:
            os.utime(fd, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(fd)

    # Entries

    def _named(self, name: bytes) -> tuple[bytes, bytes, bytes]:
        self._parents.close_retired()
        split = _split(name)
        if not split[2]:
            raise DataLoss(f"entry {_shown(name)}: the root of a layer can only be a directory")
        return split

    def _count(self, used_bytes: int = 0) -> None:
        """Of another inode."""
        if self._inodes > self._max_inodes:
            raise ResourceExhausted(f"a layer of more than {self._max_inodes} entries and directories")
        self._grow(used_bytes, 1)
        self._inodes += 1

    def _make_implied(self, above: int, part: bytes, path: bytes) -> int:
        self._implied_bytes += len(path) + IMPLIED_BYTES
        if self._implied_bytes > MAX_IMPLIED_BYTES:
            raise ResourceExhausted(
                f"directories without an entry, of more than {MAX_IMPLIED_BYTES >> 20} MiB of paths"
            )
        fd = self._make_directory(above, part)
        self._implied[os.fstat(fd).st_ino] = path
        return fd

    def _make_directory(self, parent_fd: int, base: bytes) -> int:
        """A descriptor of the directory, made or found."""
        flags = DIRECTORY | os.O_NOFOLLOW
        hiding = False
        try:
            os.mkdir(base, 0o700, dir_fd=parent_fd)
        except FileExistsError:
            if stat.S_ISDIR(os.lstat(base, dir_fd=parent_fd).st_mode):
                return os.open(base, flags, dir_fd=parent_fd)
            hiding = self._remove(parent_fd, base)
            os.mkdir(base, 0o700, dir_fd=parent_fd)
        self._count(_BLOCK)
        self._used_bytes += _BLOCK
        fd = os.open(base, flags, dir_fd=parent_fd)
        try:
            os.fchmod(fd, 0o755)
            if hiding:
                os.setxattr(fd, OPAQUE, b"y")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _create(self, parent_fd: int, base: bytes) -> int:
        self._count(_BLOCK)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(base, flags, 0o600, dir_fd=parent_fd)
        except FileExistsError:
            self._remove(parent_fd, base)
            return os.open(base, flags, 0o600, dir_fd=parent_fd)

    def _link(self, target_fd: int, target: bytes, parent_fd: int, base: bytes) -> None:
        try:
            os.link(target, base, src_dir_fd=target_fd, dst_dir_fd=parent_fd, follow_symlinks=False)
        except FileExistsError:
            if _inode(target_fd, target) == _inode(parent_fd, base):
                return
            self._remove(parent_fd, base)
            os.link(target, base, src_dir_fd=target_fd, dst_dir_fd=parent_fd, follow_symlinks=False)

    def _remove(self, parent_fd: int, base: bytes) -> bool:
        """Makes room for a later entry of the same name; tells whether a whiteout was there."""
        self._parents.forget()
        state = os.lstat(base, dir_fd=parent_fd)
        if (stat.S_ISREG(state.st_mode) and state.st_size) or stat.S_ISDIR(state.st_mode):
            self._replaced = self._replaced or base
        if stat.S_ISDIR(state.st_mode):
            trees.remove_tree(f"/proc/self/fd/{parent_fd}/{os.fsdecode(base)}")
        else:
            os.unlink(base, dir_fd=parent_fd)
        return is_whiteout(state)

    def _dress_directory(self, fd: int, path: bytes, attributes: Attributes) -> None:
        os.fchown(fd, *_owner(attributes))
        os.fchmod(fd, attributes.mode)
        _set_xattrs(path, fd, attributes)
        self._times.add(path, attributes.mtime_ns)
        if self._implied:
            self._implied.pop(os.fstat(fd).st_ino, None)

    def _make_node(self, parent_fd: int, base: bytes, kind: int, number: int) -> bool:
        """False for a device that cannot be here."""
        try:
            try:
                os.mknod(base, kind | 0o600, number, dir_fd=parent_fd)
            except FileExistsError:
                self._remove(parent_fd, base)
                os.mknod(base, kind | 0o600, number, dir_fd=parent_fd)
        except PermissionError as error:
            if in_user_namespace():
                return False
            raise OSError(errno.EOPNOTSUPP, "a device cannot be made without CAP_MKNOD") from error
        return True

    def _dress_linked(self, name: bytes, parent_fd: int, base: bytes, attributes: Attributes) -> None:
        state = os.lstat(base, dir_fd=parent_fd)
        uid, gid = _owner(attributes)
        if (state.st_uid, state.st_gid) != (uid, gid):  # else it would take away capabilities for nothing
            os.chown(base, uid, gid, dir_fd=parent_fd, follow_symlinks=False)
        if not stat.S_ISLNK(state.st_mode):
            os.chmod(base, attributes.mode, dir_fd=parent_fd)
        self._dress_rest(name, parent_fd, base, attributes)

    def _dress_node(self, name: bytes, parent_fd: int, base: bytes, attributes: Attributes) -> None:
        uid, gid = _owner(attributes)
        os.chown(base, uid, gid, dir_fd=parent_fd, follow_symlinks=False)
        self._dress_rest(name, parent_fd, base, attributes)

    def _dress_rest(self, name: bytes, parent_fd: int, base: bytes, attributes: Attributes) -> None:
        _set_xattrs(name, f"/proc/self/fd/{parent_fd}/{os.fsdecode(base)}", attributes)
        times = (attributes.mtime_ns, attributes.mtime_ns)
        os.utime(base, ns=times, dir_fd=parent_fd, follow_symlinks=False)


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


def _set_xattrs(name: bytes, target: int | str, attributes: Attributes) -> None:
    try:
        set_xattrs(target, attributes.xattrs)
    except EngineError as error:
        raise type(error)(f"entry {_shown(name)}: {error}") from error


def _write_sparse(
    fd: int, data: Iterable[memoryview], size: int, segments: Iterable[tuple[int, int]], grow: Growth
) -> int:
    """Gives about what it takes on disk."""
    pieces = iter(data)
    piece = memoryview(b"")
    used = 0
    for start, length in segments:
        offset, end = start, start + length
        used += -(-length // _BLOCK) * _BLOCK
        grow(_BLOCK, 0)
        while offset < end:
            if not piece:
                piece = next(pieces)
                grow(len(piece), 0)
            written = os.pwrite(fd, piece[: end - offset], offset)
            piece = piece[written:]
            offset += written
    os.ftruncate(fd, size)
    return used


def _inode(parent_fd: int, base: bytes) -> int:
    return os.lstat(base, dir_fd=parent_fd).st_ino


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
    if error.errno == errno.EOPNOTSUPP:
        return Unsupported(f"entry {_shown(name)}: {error.strerror}")
    if error.errno in _HOSTILE and error.errno not in EXHAUSTED:
        return DataLoss(f"entry {_shown(name)}: {(error.strerror or str(error)).lower()}")
    return translate(f"entry {_shown(name)}:", OSError(error.errno, error.strerror))


def _shown(name: bytes) -> str:
    return repr(name[:200])[1:]
