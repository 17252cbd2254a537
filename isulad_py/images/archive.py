"""Files of an archive of images by their names: a tar archive or a directory. Hostile input; synchronous."""

from __future__ import annotations

import os
import posixpath
import stat
import tempfile
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from isulad_py.host import confined
from isulad_py.host.disk_reserve import DiskReserve
from isulad_py.host.failures import translated
from isulad_py.images.inflate import HEAD_BYTES, inflate, is_compressed
from isulad_py.images.pax import Segments
from isulad_py.images.tar import Kind, TarReader
from isulad_py.images.unpack import UnpackLimits
from isulad_py.model.errors import DataLoss, EngineError, InvalidInput, NotFound, ResourceExhausted

READ_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 100_000
"""A directory of each layer, and 150 layers of each image, leave room for hundreds of images."""
_MAX_LINKS: Final = 4


class _Place(Struct, frozen=True):
    offset: int
    """Where the entry's data begins."""
    size: int
    segments: Segments | None
    """Of a sparse file: where in it the data goes."""


class Archive:
    """Every error names the archive, and the entry where there is one. To be opened, and closed."""

    def __init__(self, path: str, *, scratch: str = "", limits: UnpackLimits | None = None) -> None:
        """One that is compressed as a whole is inflated into a file without a name in `scratch`."""
        self.path = path
        self._scratch = scratch
        self._limits = limits or UnpackLimits()
        self._fd = -1
        self._is_directory = False
        self._places: dict[str, _Place] = {}
        self._links: dict[str, str] = {}

    def open(self) -> Archive:
        """Raises InvalidInput where there is nothing to read, DataLoss or Unsupported for what is no such archive,
        ResourceExhausted for one that would fill the disk."""
        try:
            # Whoever has put a pipe or a terminal there does not make us wait for it.
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            mode = os.fstat(self._fd).st_mode
        except OSError as error:
            raise InvalidInput(f"archive {self.path}: {(error.strerror or str(error)).lower()}") from error
        self._is_directory = stat.S_ISDIR(mode)
        try:
            if self._is_directory:
                self.close()
            elif not stat.S_ISREG(mode):
                raise InvalidInput("neither a file nor a directory")
            else:
                if is_compressed(os.pread(self._fd, HEAD_BYTES, 0)):
                    self._inflate()
                self._index()
        except EngineError as error:
            self.close()
            raise type(error)(f"archive {self.path}: {error}") from error
        return self

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def transport(self) -> str:
        """What containers-policy.json(5) calls its kind. A docker of today writes both layouts into one archive: OCI's
        says more, and is the one that is read."""
        if self.has("index.json") and self.has("oci-layout"):
            return "oci" if self._is_directory else "oci-archive"
        return "docker-archive"

    def names(self) -> list[str]:
        """Of the files in a tar archive, in its order."""
        return list(self._places)

    def has(self, name: str) -> bool:
        try:
            self.size(name)
        except EngineError:
            return False
        return True

    def size(self, name: str) -> int:
        """In bytes. DataLoss where the archive has no such file."""
        if not self._is_directory:
            return self._place(name).size
        fd = self._entry(name)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def read(self, name: str, limit: int) -> bytes:
        """A small file, whole."""
        size = self.size(name)
        if size > limit:
            raise ResourceExhausted(f"archive {self.path}: {name[:200]}: {size} bytes, where {limit} are the limit")
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        if self._is_directory:
            fd = self._entry(name)
            try:
                yield from self._pieces(fd, 0, os.fstat(fd).st_size, name)
            finally:
                os.close(fd)
            return
        place = self._place(name)
        if place.segments is None:
            yield from self._pieces(self._fd, place.offset, place.size, name)
            return
        at, stored = 0, place.offset
        for start, length in place.segments:
            yield from _zeros(start - at)
            yield from self._pieces(self._fd, stored, length, name)
            at, stored = start + length, stored + length
        yield from _zeros(place.size - at)

    def _pieces(self, fd: int, offset: int, size: int, name: str) -> Iterator[bytes]:
        end = offset + size
        while offset < end:
            with translated(f"archive {self.path}: {name[:200]}: read"):
                piece = os.pread(fd, min(READ_BYTES, end - offset), offset)
            if not piece:
                raise DataLoss(f"archive {self.path}: {name[:200]}: it ends early")
            offset += len(piece)
            yield piece

    def _entry(self, name: str) -> int:
        try:
            fd = confined.open_in_root(self.path, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except NotFound as error:
            raise DataLoss(f"archive {self.path}: has no {name[:200]!r}") from error
        except (EngineError, ValueError) as error:  # also a name with a NUL in it
            raise DataLoss(f"archive {self.path}: {name[:200]!r}: {error}") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise DataLoss(f"archive {self.path}: {name[:200]!r} is not a file")
        return fd

    def _place(self, name: str) -> _Place:
        key = posixpath.normpath(name)
        for _ in range(_MAX_LINKS):
            if key not in self._links:
                break
            key = self._links[key]
        if key not in self._places:
            raise DataLoss(f"archive {self.path}: has no {name[:200]!r}")
        return self._places[key]

    def _index(self) -> None:
        reader = TarReader(self._stream())
        for number, entry in enumerate(reader):
            name = entry.name[:300].decode(errors="backslashreplace")
            if number >= MAX_ENTRIES or len(entry.name) > 300:
                raise ResourceExhausted(f"{name}: more than {MAX_ENTRIES} entries, or longer names than 300 bytes")
            key = posixpath.normpath(name)
            if entry.kind is Kind.FILE:
                self._add(key, name)
                if entry.segments is not None:  # of a writer that looked for holes
                    stored = sum(length for _, length in entry.segments)
                    self._limits.check_expansion(entry.size, stored, name)
                self._places[key] = _Place(reader.offset, entry.size, entry.segments)
            elif entry.kind in {Kind.SYMLINK, Kind.HARDLINK}:  # docker's older archives: a layer that comes twice
                target = entry.link[:300].decode(errors="backslashreplace")
                base = posixpath.dirname(key) if entry.kind is Kind.SYMLINK else ""
                self._add(key, name)
                self._links[key] = posixpath.normpath(posixpath.join(base, target))

    def _add(self, key: str, name: str) -> None:
        """A name that comes twice could be read in two ways."""
        if key in self._places or key in self._links:
            raise DataLoss(f"{name}: comes twice")

    def _inflate(self) -> None:
        """Entries are read in any order, which a compressed file does not allow."""
        taken = given = 0
        room = DiskReserve(self._scratch or tempfile.gettempdir(), keep_bytes=self._limits.reserve_bytes, keep_inodes=0)

        def counted() -> Iterator[bytes]:
            nonlocal taken
            for piece in self._stream():
                taken += len(piece)
                yield piece

        with translated(f"inflate into {self._scratch}:"), tempfile.TemporaryFile(dir=self._scratch or None) as file:
            for piece in inflate(counted()):
                given += len(piece)
                self._limits.check_expansion(given, taken, "it")
                room.take(len(piece), 0)
                file.write(piece)
            file.flush()
            os.close(self._fd)
            self._fd = -1
            self._fd = os.dup(file.fileno())

    def _stream(self) -> Iterator[bytes]:
        offset = 0
        with translated("read"):
            while piece := os.pread(self._fd, READ_BYTES, offset):
                offset += len(piece)
                yield piece


def _zeros(size: int) -> Iterator[bytes]:
    while size > 0:
        piece = min(size, READ_BYTES)
        size -= piece
        yield bytes(piece)
