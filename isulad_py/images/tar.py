"""PURE: a tar archive as it streams by: entries and their data, in the dialects that image builders write (ustar, pax,
GNU, old V7).

The standard library's tarfile takes 18 µs of the interpreter lock for an entry and copies the data through a file
object; this reader takes 7, hands out the data as views of the chunks that came in, and bounds what it keeps.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from isulad_py.images import pax
from isulad_py.images.pax import BLOCK, Segments
from isulad_py.model.errors import DataLoss, Unsupported

MAX_HEADER_BYTES: Final = 1024 * 1024
"""Of one extended header or long name, as Go's archive/tar has it."""
_EMPTY: Final = bytes(BLOCK)
_HEADER: Final = struct.Struct("100s8s8s8s12s12s8sc100s8s32s32s8s8s155s12s")
_USTAR: Final = b"ustar\x0000"
_GNU: Final = b"ustar  \x00"


class Kind(enum.Enum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    CHARACTER = "character device"
    BLOCK = "block device"
    FIFO = "fifo"


class Entry(Struct, kw_only=True):
    """Names are bytes, as the kernel's are. Nothing in here can be trusted."""

    name: bytes
    kind: Kind
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    size: int = 0
    """Of the file as it will be; of a sparse one more than the archive holds."""
    link: bytes = b""
    device: tuple[int, int] = (0, 0)
    xattrs: dict[str, bytes] = {}
    segments: Segments | None = None
    """Of a sparse file: where its data goes. None: from the start, without a hole."""


_KINDS: Final = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,  # contiguous: treated as a regular file (POSIX)
    b"S": Kind.FILE,
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.CHARACTER,
    b"4": Kind.BLOCK,
    b"5": Kind.DIRECTORY,
    b"6": Kind.FIFO,
}
_EXTENSIONS: Final = frozenset(b"xgLKX"[i : i + 1] for i in range(5))


class _Extension(Struct):
    """What the headers before an entry say about it."""

    records: dict[str, bytes] = {}
    name: bytes | None = None
    link: bytes | None = None


class TarReader:
    """Iterate over it for the entries; `data()` gives the data of the entry at hand, whatever is left of it is skipped.

    Raises DataLoss for what is not a tar archive, Unsupported for an entry of an unknown kind.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._chunk: bytes = b""
        self._at = 0
        self._data_left = 0
        self._padding = 0
        self._passed = 0

    @property
    def offset(self) -> int:
        """In the stream: right after an entry was given, where its data begins."""
        return self._passed + self._at

    def __iter__(self) -> Iterator[Entry]:
        while (entry := self._next()) is not None:
            yield entry

    def data(self) -> Iterator[memoryview]:
        """The stored data of the entry at hand, in pieces that are valid until the next one is asked for."""
        while self._data_left:
            if self._at >= len(self._chunk) and not self._refill():
                raise DataLoss("tar: the archive ends within a file")
            piece = memoryview(self._chunk)[self._at : self._at + self._data_left]
            self._at += len(piece)
            self._data_left -= len(piece)
            yield piece

    def drain(self) -> None:
        """Reads on to the end of the stream: what follows the archive belongs to the layer's digest too."""
        while self._refill():
            pass

    def _next(self) -> Entry | None:
        for _ in self.data():
            pass
        self._skip(self._padding)
        self._padding = 0
        extension = _Extension()
        while True:
            block = self._block()
            if block is None:
                return None
            fields = _HEADER.unpack(block)
            _check_sum(block, fields[6])
            typeflag = fields[7]
            if typeflag not in _EXTENSIONS:
                return self._entry(block, fields, extension)
            self._extend(extension, typeflag, _number(fields[4], "size"))

    def _block(self) -> bytes | None:
        """The next header; None at the end of the archive: an empty block, or the end of the stream at a boundary."""
        if self._at >= len(self._chunk) and not self._refill():
            return None
        block = self._take(BLOCK)
        return None if block == _EMPTY else block

    def _extend(self, extension: _Extension, typeflag: bytes, size: int) -> None:
        if size > MAX_HEADER_BYTES:
            raise DataLoss(f"tar: extended header of {size} bytes")
        data = self._take(size)
        self._skip(-size % BLOCK)
        if typeflag == b"L":
            extension.name = data.split(b"\0", 1)[0]
        elif typeflag == b"K":
            extension.link = data.split(b"\0", 1)[0]
        elif typeflag != b"g":  # a global header says nothing that docker or containerd would heed
            extension.records = pax.parse_records(data)

    def _entry(self, block: bytes, fields: tuple[bytes, ...], extension: _Extension) -> Entry:
        typeflag, magic, records = fields[7], fields[9], extension.records
        kind = _KINDS.get(typeflag)
        if kind is None:
            raise Unsupported(f"tar: entry {_name(fields, extension)[:200]!r} of unknown kind {typeflag!r}")
        name = _name(fields, extension)
        # Only regular files carry data; some writers leave a size in the others (POSIX: ignore it for links).
        size = _record_number(records, "size", fields[4]) if kind is Kind.FILE else 0
        self._data_left, self._padding = size, -size % BLOCK
        if kind is Kind.FILE and name.endswith(b"/") and typeflag in {b"\0", b"0"}:
            kind, size = Kind.DIRECTORY, 0  # as V7 wrote them
        entry = Entry(
            name=name,
            kind=kind,
            mode=_number(fields[1], "mode") & 0o7777,
            uid=_record_number(records, "uid", fields[2]),
            gid=_record_number(records, "gid", fields[3]),
            mtime_ns=_mtime(records, fields[5]),
            size=size,
        )
        if kind in {Kind.SYMLINK, Kind.HARDLINK}:
            entry.link = _link(fields, extension)
        elif kind in {Kind.CHARACTER, Kind.BLOCK}:
            entry.device = (_number(fields[12], "device"), _number(fields[13], "device"))
        if records:
            entry.xattrs = pax.xattrs_of(records)
        if kind is Kind.FILE and (typeflag == b"S" or "GNU.sparse.major" in records or "GNU.sparse.map" in records):
            self._sparse(entry, block, records, old=typeflag == b"S" and magic == _GNU)
        elif "GNU.sparse.numblocks" in records:
            raise Unsupported("tar: sparse file in GNU's format 0.0")
        return entry

    def _sparse(self, entry: Entry, block: bytes, records: dict[str, bytes], *, old: bool) -> None:
        if old:
            numbers = self._old_map(block)
            real_size = _number(block[483:495], "size of a sparse file")
        elif pax.is_sparse_1_0(records):
            if self._data_left < BLOCK:
                raise DataLoss("tar: sparse file without its map")
            numbers, taken = pax.read_sparse_1_0(self._take)
            self._data_left -= taken
            if self._data_left < 0:
                raise DataLoss("tar: sparse map is longer than its file")
            real_size = _record_number(records, "GNU.sparse.realsize", b"")
        else:
            numbers = pax.sparse_map_of(records) or []
            real_size = _record_number(records, "GNU.sparse.size", b"")
        entry.size = real_size
        entry.segments = pax.segments_of(numbers, real_size, self._data_left)

    def _old_map(self, block: bytes) -> list[int]:
        """Four pieces in the header, 21 in each block that follows while the one before says so (GNU's old format)."""
        numbers: list[int] = []
        at, count, more = 386, 4, block[482]
        while True:
            for place in range(at, at + 24 * count, 24):
                offset, length = block[place : place + 12], block[place + 12 : place + 24]
                if offset[0] == 0 or length[0] == 0:
                    break
                numbers += [_number(offset, "sparse map"), _number(length, "sparse map")]
            if not more:
                return numbers
            if len(numbers) > 2 * pax.MAX_SEGMENTS:
                raise DataLoss("tar: sparse map is too long")
            block = self._take(BLOCK)
            at, count, more = 0, 21, block[504]

    def _take(self, size: int) -> bytes:
        """Exactly that many bytes."""
        end = self._at + size
        if end <= len(self._chunk):
            data = self._chunk[self._at : end]
            self._at = end
            return data
        parts = [self._chunk[self._at :]]
        missing = size - len(parts[0])
        while missing:
            if not self._refill():
                raise DataLoss("tar: the archive ends within a header")
            part = self._chunk[:missing]
            self._at = len(part)
            missing -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _skip(self, size: int) -> None:
        while size > 0:
            here = min(size, len(self._chunk) - self._at)
            self._at += here
            size -= here
            if size and not self._refill():
                return  # some writers leave out the padding of the last file

    def _refill(self) -> bool:
        for chunk in self._chunks:
            if chunk:
                self._passed += len(self._chunk)
                self._chunk, self._at = chunk, 0
                return True
        self._passed += len(self._chunk)
        self._chunk, self._at = b"", 0
        return False


def _check_sum(block: bytes, field: bytes) -> None:
    """The sum of all bytes with the field itself as blanks; some old writers took the bytes as signed."""
    wanted = _number(field, "checksum")
    rest = block[:148] + block[156:]
    unsigned = sum(rest) + 8 * 0x20
    if wanted != unsigned and wanted != unsigned - 256 * sum(byte > 127 for byte in rest):
        raise DataLoss("tar: not a tar archive: a header's checksum is wrong")


def _number(field: bytes, what: str) -> int:
    """Octal text, or where it does not fit (GNU) a big-endian number behind a marker."""
    if field[0] & 0x80:
        if field[0] & 0x40:
            raise DataLoss(f"tar: {what} is negative")
        number = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
    else:
        text = field.strip(b" \0").split(b"\0", 1)[0]
        try:
            number = int(text, 8) if text else 0
        except ValueError as error:
            raise DataLoss(f"tar: {what} is not a number: {field!r}") from error
    if not 0 <= number < 1 << 63:
        raise DataLoss(f"tar: {what} is out of range: {number}")
    return number


def _record_number(records: dict[str, bytes], key: str, field: bytes) -> int:
    value = records.get(key) if records else None
    if value:
        return pax.parse_number(value, key)
    return _number(field, key) if field else 0


def _mtime(records: dict[str, bytes], field: bytes) -> int:
    value = records.get("mtime") if records else None
    if value:
        return pax.parse_time(value)
    if field[0] == 0xFF:
        return int.from_bytes(field, "big", signed=True) * 1_000_000_000  # before 1970 (GNU)
    seconds = _number(field, "mtime")
    if seconds >= 1 << 40:
        raise DataLoss(f"tar: mtime is out of range: {seconds}")
    return seconds * 1_000_000_000


def _name(fields: tuple[bytes, ...], extension: _Extension) -> bytes:
    records = extension.records
    if records:
        value = records.get("GNU.sparse.name") or records.get("path")
        if value:
            return value
    if extension.name is not None:
        return extension.name
    name = fields[0].split(b"\0", 1)[0]
    if fields[9] == _USTAR and fields[14][0]:
        return fields[14].split(b"\0", 1)[0] + b"/" + name
    return name


def _link(fields: tuple[bytes, ...], extension: _Extension) -> bytes:
    value = extension.records.get("linkpath")
    if value:
        return value
    return extension.link if extension.link is not None else fields[8].split(b"\0", 1)[0]
