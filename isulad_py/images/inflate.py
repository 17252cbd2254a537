"""Compressed layers as plain bytes, in bounded pieces. The compression is known by its first bytes, as docker and
containerd know it: media types of real images are not always true. No file is opened, no thread is started.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final, Protocol, cast

import zstandard
from isal import isal_zlib

from isulad_py.model.errors import DataLoss, ResourceExhausted

PIECE_BYTES: Final = 1024 * 1024
"""Longest piece that comes out, however much a chunk inflates to."""
MAX_WINDOW_BYTES: Final = 128 * 1024 * 1024
"""What a compressed stream may make us remember: zstd's own default, which `--long=27` needs."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_XZ: Final = b"\xfd7zXZ\0"
_BZIP2: Final = b"BZh"
HEAD_BYTES: Final = len(_XZ)
"""So many tell the compression."""
_GZIP_ERROR: Final = cast("type[Exception]", isal_zlib.IsalError)  # its type stub calls it an instance
_GZIP_WINDOW: Final = 31
"""zlib's code for: 32 KiB, with gzip's header and checksum."""


def inflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The layer's tar archive. Raises DataLoss for a broken stream."""
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    source = itertools.chain((head,), source)
    if head.startswith(_GZIP):
        return _gunzip(source)
    if _is_zstd(head):
        return _unzstd(source)
    if head.startswith(_XZ):
        return _unpack(source, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_WINDOW_BYTES), "xz")
    if head.startswith(_BZIP2):
        return _unpack(source, bz2.BZ2Decompressor, "bzip2")
    return source


def is_compressed(head: bytes) -> bool:
    """By the first HEAD_BYTES."""
    return head.startswith((_GZIP, _XZ, _BZIP2)) or _is_zstd(head)


def _is_zstd(head: bytes) -> bool:
    """Also with a skippable frame first: zstd:chunked and seekable archives (zstd format, skippable frames)."""
    return head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50)


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    stream = isal_zlib.decompressobj(_GZIP_WINDOW)
    begun = False
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if stream.eof:  # the next member, or padding
                    rest = rest.lstrip(b"\0")
                    if not rest:
                        break
                    stream = isal_zlib.decompressobj(_GZIP_WINDOW)
                begun = True
                piece = stream.decompress(rest, PIECE_BYTES)
                if piece:
                    yield piece
                rest = stream.unused_data if stream.eof else stream.unconsumed_tail
            # What fits into the decoder's own buffers needs no more input to come out.
            while begun and not stream.eof and (piece := stream.decompress(b"", PIECE_BYTES)):
                yield piece
    except _GZIP_ERROR as error:
        raise DataLoss(f"gzip: {error}") from error
    if not stream.eof:
        raise DataLoss("gzip: the stream ends early")


def _unzstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    try:
        with decompressor.stream_reader(cast("IO[bytes]", _Reader(chunks)), read_across_frames=True) as reader:
            while piece := reader.read(PIECE_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        if "memory" in str(error):
            raise ResourceExhausted(f"zstd: wants a window of more than {MAX_WINDOW_BYTES >> 20} MiB") from error
        raise DataLoss(f"zstd: {error}") from error


class _Decompressor(Protocol):
    """What bz2 and lzma have alike."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def _unpack(chunks: Iterator[bytes], new: Callable[[], _Decompressor], name: str) -> Iterator[bytes]:
    """One stream after another, as their programs write and read them."""
    stream = new()
    for chunk in chunks:
        rest = chunk
        while rest or not (stream.eof or stream.needs_input):
            if stream.eof:
                rest = rest.lstrip(b"\0")  # padding
                if not rest:
                    break
                stream = new()
            piece = _decompressed(stream, rest, name)
            if piece:
                yield piece
            rest = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise DataLoss(f"{name}: the stream ends early")


def _decompressed(stream: _Decompressor, data: bytes, name: str) -> bytes:
    try:
        return stream.decompress(data, PIECE_BYTES)
    except (lzma.LZMAError, OSError, EOFError, ValueError) as error:
        if "emory" in str(error):
            raise ResourceExhausted(f"{name}: wants more than {MAX_WINDOW_BYTES >> 20} MiB of memory") from error
        raise DataLoss(f"{name}: {str(error).lower()}") from error


class _Reader:
    """The part of a binary file that zstandard reads from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = next(self._chunks, b"")
        if size < 0:
            size = len(self._rest)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
