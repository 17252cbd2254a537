"""Compressed layers as plain bytes, in bounded pieces. The compression is known by its first bytes, as docker and
containerd know it: media types of real images are not always true. No file is opened, no thread is started.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import IO, Final, cast

import zstandard
from isal import isal_zlib

from isulad_py.model.errors import DataLoss, ResourceExhausted

PIECE_BYTES: Final = 1024 * 1024
"""Longest piece that comes out, however much a chunk inflates to."""
MAX_WINDOW_BYTES: Final = 128 * 1024 * 1024
"""What a zstd frame may make us remember: zstd's own default, which `--long=27` needs."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP_ERROR: Final = cast("type[Exception]", isal_zlib.IsalError)  # its type stub calls it an instance
_GZIP_WINDOW: Final = 31
"""zlib's code for: 32 KiB, with gzip's header and checksum."""


def inflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The layer's tar archive. Raises DataLoss for a broken stream."""
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= len(_ZSTD):
            break
    source = itertools.chain((head,), source)
    if head.startswith(_GZIP):
        return _gunzip(source)
    # A skippable frame first: zstd:chunked and seekable archives (zstd format, skippable frames).
    if head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        return _unzstd(source)
    return source


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
