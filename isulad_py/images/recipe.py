"""How a layer's archive was put together: every byte of it that is not a file's data, in order, with the places of the
data. With the unpacked files this makes the very same archive again, so that what is saved has the digests of what
came in. Synchronous.

A gzip stream of frames. Literal: kind 0, length, bytes. Data: kind 1, length of the name, length of the data, number
of pieces, name, pieces (offset and length in a sparse file; none: from the start). Replaced: kind 2, length, name: an
entry whose place a later one took, so that its data may be on disk no more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, cast

from isal import igzip, isal_zlib

from isulad_py.host import confined
from isulad_py.host.disk_reserve import Growth
from isulad_py.host.failures import translated
from isulad_py.images.pax import Segments
from isulad_py.images.tar import Entry, Kind, TarReader
from isulad_py.images.whiteouts import is_marker
from isulad_py.model.errors import DataLoss, EngineError, NotFound, Unsupported

READ_BYTES: Final = 256 * 1024
_LITERAL_LIMIT: Final = 64 * 1024 * 1024
_BUFFER_BYTES: Final = 64 * 1024
_FRAME: Final = struct.Struct("<BI")
_DATA: Final = struct.Struct("<QI")
_PIECE: Final = struct.Struct("<QQ")
_GZIP: Final = 31
"""zlib's code for: gzip's header and checksum."""
_LITERAL_KIND: Final = 0
_DATA_KIND: Final = 1
_REPLACED_KIND: Final = 2


class RecipeWriter:
    """Written while the layer is unpacked. Without `finish` there is no recipe."""

    def __init__(self, path: str, grow: Growth) -> None:
        self._grow = grow
        self._pending = bytearray()
        self._gzip = isal_zlib.compressobj(level=1, wbits=_GZIP)
        with translated("keep how the layer was packed:"):
            self._file = Path(path).open("xb")  # noqa: SIM115 -- closed by `close`

    def literal(self, data: bytes | memoryview) -> None:
        self._pending += data
        if len(self._pending) >= _BUFFER_BYTES:
            self._flush()

    def data(self, name: bytes, length: int, segments: Segments | None) -> None:
        self._flush()
        pieces = list(segments or ())
        frame = _FRAME.pack(_DATA_KIND, len(name)) + _DATA.pack(length, len(pieces)) + name
        self._write(frame + b"".join(_PIECE.pack(*piece) for piece in pieces))

    def finish(self, replaced: bytes = b"") -> int:
        """Gives the size on disk. `replaced` names an entry that is not on disk any more."""
        self._flush()
        if replaced:
            self._write(_FRAME.pack(_REPLACED_KIND, len(replaced)) + replaced)
        with translated("keep how the layer was packed:"):
            self._file.write(self._gzip.flush())
            size = self._file.tell()
            self._file.close()
        return size

    def close(self) -> None:
        """Idempotent."""
        self._file.close()

    def _flush(self) -> None:
        if self._pending:
            data = bytes(self._pending)
            self._pending.clear()
            self._write(_FRAME.pack(_LITERAL_KIND, len(data)) + data)

    def _write(self, frame: bytes) -> None:
        data = self._gzip.compress(frame)
        self._grow(len(data), 0)
        with translated("keep how the layer was packed:"):
            self._file.write(data)


class RecordingReader(TarReader):
    """Notes the recipe of what it reads."""

    def __init__(self, chunks: Iterable[bytes], recipe: RecipeWriter) -> None:
        super().__init__(chunks)
        self._recipe = recipe
        self._literal = False
        """Whether the data of the entry at hand is on no disk: of a marker, or of a directory as V7 may write it."""

    def data(self) -> Iterator[memoryview]:
        for piece in super().data():
            if self._literal:
                self._recipe.literal(piece)
            yield piece

    def _next(self) -> Entry | None:
        entry = super()._next()
        if entry is not None and self._data_left:
            self._literal = entry.kind is not Kind.FILE or is_marker(entry.name)
        if entry is not None and self._data_left and not self._literal:
            self._recipe.data(entry.name, self._data_left, entry.segments)
        return entry

    def _take(self, size: int) -> bytes:
        data = super()._take(size)
        self._recipe.literal(data)
        return data

    def _skip(self, size: int) -> None:
        while size > 0:
            piece = self._chunk[self._at : self._at + size]
            self._recipe.literal(piece)
            self._at += len(piece)
            size -= len(piece)
            if size and not self._refill():
                return

    def drain(self) -> None:
        self._recipe.literal(self._chunk[self._at :])
        while self._refill():
            self._recipe.literal(self._chunk)


class Recipe:
    """Of a layer in the store. Raises NotFound where none was kept, DataLoss for one that is damaged, Unsupported where
    the data of replaced entries would be needed."""

    def __init__(self, path: str, directory: str) -> None:
        self._path = path
        self._directory = directory
        self._replaced = b""

    def lost(self, message: str) -> EngineError:
        """What to raise where the files do not give the archive."""
        self.size()  # reads up to the end, where it is told
        if self._replaced:
            name = os.fsdecode(self._replaced)[:200]
            return Unsupported(
                f"it holds {name!r} twice, and what the later one replaced is not kept: it cannot be saved"
            )
        return DataLoss(f"{message}: remove its images, and pull or load them again")

    def size(self) -> int:
        """Of the archive, in bytes."""
        total = 0
        for literal, _, length, _ in self._frames():
            total += len(literal) + length
        return total

    def archive(self) -> Iterator[bytes]:
        """The archive again; whoever takes it verifies its digest."""
        for literal, name, length, pieces in self._frames():
            if literal:
                yield literal
            if length:
                yield from self._data(name, length, pieces)

    def _frames(self) -> Iterator[tuple[bytes, bytes, int, list[tuple[int, int]]]]:
        """Literal, name, length of the data, pieces."""
        try:
            with cast("IO[bytes]", igzip.open(self._path, "rb")) as stream:  # type: ignore[no-untyped-call]  # isal's own
                while head := stream.read(_FRAME.size):
                    literal, name, length, pieces = _frame(stream, head)
                    if name and not length:
                        self._replaced = name
                        continue
                    yield literal, name, length, pieces
        except FileNotFoundError as error:
            raise NotFound(
                "how the layer was packed is not known: remove its images, and pull or load them again"
            ) from error
        except (OSError, EOFError, struct.error, cast("type[Exception]", isal_zlib.error)) as error:
            raise DataLoss(f"how the layer was packed cannot be read: {error}") from error

    def _data(self, name: bytes, length: int, pieces: list[tuple[int, int]]) -> Iterator[bytes]:
        path = os.fsdecode(name)
        try:
            fd = confined.open_in_root(self._directory, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except EngineError as error:
            raise self.lost(f"entry {path[:200]!r} is not on disk any more: {error}") from error
        try:
            for offset, size in pieces or [(0, length)]:
                at, end = offset, offset + size
                while at < end:
                    with translated(f"read {path[:200]!r}:"):
                        data = os.pread(fd, min(READ_BYTES, end - at), at)
                    if not data:
                        raise self.lost(f"entry {path[:200]!r} is shorter than it was")
                    at += len(data)
                    yield data
        finally:
            os.close(fd)


def _frame(stream: IO[bytes], head: bytes) -> tuple[bytes, bytes, int, list[tuple[int, int]]]:
    kind, size = _FRAME.unpack(head)
    exact = _exact(stream)
    if kind not in {_LITERAL_KIND, _DATA_KIND, _REPLACED_KIND} or size > _LITERAL_LIMIT:
        raise DataLoss("how the layer was packed cannot be read: a frame of no known kind")
    if kind == _LITERAL_KIND:
        return exact(size), b"", 0, []
    if kind == _REPLACED_KIND:
        return b"", exact(size), 0, []
    length, count = _DATA.unpack(exact(_DATA.size))
    name = exact(size)
    return b"", name, length, list(_PIECE.iter_unpack(exact(count * _PIECE.size)))


def _exact(stream: IO[bytes]) -> Callable[[int], bytes]:
    def read(size: int) -> bytes:
        data = stream.read(size)
        if len(data) != size:
            raise EOFError("it ends early")
        return data

    return read
