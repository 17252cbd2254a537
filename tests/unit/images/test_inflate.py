"""Compressed streams in pieces of any size."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import random
import zlib
from collections.abc import Callable, Iterator

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from isulad_py.images.inflate import HEAD_BYTES, PIECE_BYTES, inflate, is_compressed
from isulad_py.model.errors import DataLoss, ResourceExhausted

NOISE = random.Random(7).randbytes(5000)
SKIPPABLE = b"\x5a\x2a\x4d\x18" + (8).to_bytes(4, "little") + b"whatever"


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def split(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 20])
@pytest.mark.parametrize(
    "blob",
    [
        pytest.param(NOISE, id="plain"),
        pytest.param(gzip.compress(NOISE), id="gzip"),
        pytest.param(gzip.compress(NOISE[:7]) + gzip.compress(NOISE[7:]), id="gzip, two members"),
        pytest.param(gzip.compress(NOISE) + bytes(513), id="gzip, padded"),
        pytest.param(zstd(NOISE), id="zstd"),
        pytest.param(zstd(NOISE[:7]) + zstd(NOISE[7:]), id="zstd, two frames"),
        pytest.param(lzma.compress(NOISE), id="xz"),
        pytest.param(lzma.compress(NOISE[:7]) + bytes(8) + lzma.compress(NOISE[7:]) + bytes(4), id="xz, two streams"),
        pytest.param(bz2.compress(NOISE), id="bzip2"),
        pytest.param(bz2.compress(NOISE[:7]) + bz2.compress(NOISE[7:]), id="bzip2, two streams"),
        pytest.param(SKIPPABLE + zstd(NOISE[:7]) + SKIPPABLE + zstd(NOISE[7:]) + SKIPPABLE, id="zstd:chunked"),
    ],
)
def test_any_compression_in_any_pieces(blob: bytes, size: int) -> None:
    assert b"".join(inflate(split(blob, size))) == NOISE


@pytest.mark.parametrize("compress", [gzip.compress, zstd, lzma.compress, bz2.compress])
def test_what_inflates_enormously_comes_in_bounded_pieces(compress: object) -> None:
    assert callable(compress)
    data = bytes(50_000_000)
    pieces = list(map(len, inflate([compress(data)])))
    assert sum(pieces) == len(data)
    assert max(pieces) <= PIECE_BYTES


@pytest.mark.parametrize(
    "blob",
    [
        gzip.compress(NOISE)[:-9],
        gzip.compress(NOISE)[:5],
        gzip.compress(NOISE) + b"garbage",
        gzip.compress(NOISE)[:100] + bytes(100) + gzip.compress(NOISE)[200:],
        b"\x1f\x8b" + NOISE,
        zstd(NOISE)[:200] + NOISE,
        lzma.compress(NOISE)[:-9],
        lzma.compress(NOISE)[:200] + NOISE,
        lzma.compress(NOISE) + b"garbage",
        bz2.compress(NOISE)[:-9],
        bz2.compress(NOISE)[:200] + NOISE,
    ],
)
def test_a_broken_stream_is_told(blob: bytes) -> None:
    with pytest.raises(DataLoss, match=r"gzip|zstd|xz|bzip2"):
        list(inflate([blob]))


def test_an_xz_stream_that_wants_a_gigabyte_is_refused() -> None:
    blob = bytearray(lzma.compress(NOISE, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    # The size of the dictionary is one byte of the block header, which a checksum guards (xz file format, 3.1, 5.3.1).
    blob[16] = 36
    blob[20:24] = zlib.crc32(bytes(blob[12:20])).to_bytes(4, "little")
    with pytest.raises(ResourceExhausted, match="xz: wants more than 128 MiB"):
        list(inflate([bytes(blob)]))


@pytest.mark.parametrize("compress", [gzip.compress, zstd, lzma.compress, bz2.compress, lambda data: SKIPPABLE + data])
def test_what_is_compressed_is_known(compress: Callable[[bytes], bytes]) -> None:
    assert is_compressed(compress(NOISE)[:HEAD_BYTES])
    assert not is_compressed(NOISE[:HEAD_BYTES])
    assert not is_compressed(b"")


def test_a_window_of_a_gigabyte_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, compression_level=1)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    blob = compressor.compress(NOISE) + compressor.flush()
    with pytest.raises(ResourceExhausted, match="128 MiB"):
        list(inflate([blob]))


def test_nothing_is_nothing() -> None:
    assert b"".join(inflate([])) == b""
    assert b"".join(inflate([b"", b"x"])) == b"x"


@settings(deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh9"]),
    st.integers(1, 50),
)
def test_any_bytes_inflate_or_are_refused(data: bytes, magic: bytes, size: int) -> None:
    with contextlib.suppress(DataLoss, ResourceExhausted):
        list(inflate(split(magic + data, size)))
