"""A tar archive as a checkpoint is made of: entries of files that lie here. Synchronous."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from isulad_py.model.errors import Aborted, HostFailure

BLOCK: Final = 512
_PIECE: Final = 1024 * 1024
_OVERLAY: Final = "trusted.overlay."
_TYPES: Final = {
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
}

Stopped = Callable[[], bool]
"""Whether nobody waits for the outcome any more."""


class TarWriter:
    """Writes into an open descriptor, from which it knows nothing else. To be ended by `finish`."""

    def __init__(self, fd: int, stopped: Stopped) -> None:
        self._fd = fd
        self._stopped = stopped
        self._links: dict[tuple[int, int], str] = {}
        """First name of each file that has more than one."""

    def document(self, name: str, data: bytes) -> None:
        header = tarfile.TarInfo(name)
        header.size, header.mode = len(data), 0o600
        self._header(header)
        self._write(data + bytes(-len(data) % BLOCK))

    def directory(self, name: str) -> None:
        """One that stands for no directory here."""
        header = tarfile.TarInfo(name)
        header.type, header.mode = tarfile.DIRTYPE, 0o700
        self._header(header)

    def file(self, name: str, path: str) -> None:
        """A regular file as it is now: what is added to it meanwhile is left out."""
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise HostFailure(f"{path}: not a regular file")
            header = tarfile.TarInfo(name)
            header.size, header.mode, header.mtime = state.st_size, 0o600, int(state.st_mtime)
            self._header(header)
            self._content(fd, state.st_size, path)
        finally:
            os.close(fd)

    def entry(self, name: str, path: str) -> None:
        """Whatever is at `path`, with its owner, its times and its attributes; nothing for a socket."""
        state = os.lstat(path)
        kind = _TYPES.get(stat.S_IFMT(state.st_mode))
        if kind is None:
            return
        header = _header_of(name, state, kind)
        header.pax_headers = {**header.pax_headers, **_xattrs(path)}
        if kind == tarfile.SYMTYPE:
            header.linkname = str(Path(path).readlink())
        if kind == tarfile.DIRTYPE:
            self._header(header)
            return
        first = self._links.setdefault((state.st_dev, state.st_ino), name) if state.st_nlink > 1 else name
        if first != name:
            header.type, header.linkname, header.size = tarfile.LNKTYPE, first, 0
            self._header(header)
        elif kind == tarfile.REGTYPE:
            self._regular(header, path)
        else:
            self._header(header)

    def _regular(self, header: tarfile.TarInfo, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._header(header)
            self._content(fd, header.size, path)
        finally:
            os.close(fd)

    def finish(self) -> None:
        self._write(bytes(2 * BLOCK))
        os.fsync(self._fd)

    def _header(self, header: tarfile.TarInfo) -> None:
        if self._stopped():
            raise Aborted("the checkpoint was given up")
        self._write(header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))

    def _content(self, fd: int, size: int, path: str) -> None:
        left = size
        while left:
            if self._stopped():
                raise Aborted("the checkpoint was given up")
            piece = os.read(fd, min(_PIECE, left))
            if not piece:
                raise HostFailure(f"{path}: it became shorter while it was read")
            left -= len(piece)
            self._write(piece)
        self._write(bytes(-size % BLOCK))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def _header_of(name: str, state: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type = kind
    header.mode = stat.S_IMODE(state.st_mode)
    header.uid, header.gid = state.st_uid, state.st_gid
    header.mtime = state.st_mtime_ns // 10**9
    header.pax_headers = {"mtime": f"{header.mtime}.{state.st_mtime_ns % 10**9:09d}"}
    if kind == tarfile.REGTYPE:
        header.size = state.st_size
    if kind in {tarfile.CHRTYPE, tarfile.BLKTYPE}:
        header.devmajor, header.devminor = os.major(state.st_rdev), os.minor(state.st_rdev)
    return header


def _xattrs(path: str) -> dict[str, str]:
    """As GNU tar and Go write them; overlay's own say nothing to others."""
    found = {}
    for name in os.listxattr(path, follow_symlinks=False):
        if not name.startswith(_OVERLAY):
            value = os.getxattr(path, name, follow_symlinks=False)
            found[f"SCHILY.xattr.{name}"] = value.decode("utf-8", "surrogateescape")
    return found
