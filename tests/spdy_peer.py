"""The other side of SPDY/3.1, written for tests apart from ours: naive, keeps whole frames, raises on anything odd."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from isulad_py.streaming.spdy_headers import DICTIONARY

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
DATA = 0


class Heard(NamedTuple):
    """A frame; `number` is the stream, the ping or the last good stream."""

    kind: int
    number: int
    flags: int = 0
    body: bytes = b""

    @property
    def fin(self) -> bool:
        return bool(self.flags & 1)

    @property
    def value(self) -> int:
        """Status or delta."""
        return int(struct.unpack(">I", self.body)[0])


class Peer:
    """Makes and takes apart bytes; each direction has its own compression."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(9, zdict=DICTIONARY)
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._buffer = b""

    def control(self, kind: int, body: bytes, flags: int = 0, version: int = 3) -> bytes:
        return struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body

    def plain_block(self, headers: dict[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for pair in headers.items():
            parts += [struct.pack(">I", len(text)) + text.encode() for text in pair]
        return b"".join(parts)

    def compress(self, plain: bytes) -> bytes:
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def syn_stream(self, number: int, headers: dict[str, str], *, fin: bool = False) -> bytes:
        block = self.compress(self.plain_block(headers))
        return self.control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + block, int(fin))

    def headers(self, number: int, headers: dict[str, str], *, fin: bool = False) -> bytes:
        return self.control(HEADERS, struct.pack(">I", number) + self.compress(self.plain_block(headers)), int(fin))

    def data(self, number: int, data: bytes, *, fin: bool = False) -> bytes:
        return struct.pack(">II", number, int(fin) << 24 | len(data)) + data

    def pair(self, kind: int, first: int, second: int) -> bytes:
        """RST_STREAM, GOAWAY, WINDOW_UPDATE."""
        return self.control(kind, struct.pack(">II", first, second))

    def ping(self, number: int) -> bytes:
        return self.control(PING, struct.pack(">I", number))

    def settings(self, *values: tuple[int, int]) -> bytes:
        body = struct.pack(">I", len(values)) + b"".join(struct.pack(">II", *value) for value in values)
        return self.control(SETTINGS, body)

    def hear(self, data: bytes) -> list[Heard]:
        """Whole frames so far. The headers of replies are inflated into the body."""
        self._buffer += data
        heard = []
        while len(self._buffer) >= 8:
            first, second = struct.unpack(">II", self._buffer[:8])
            size, flags = second & 0xFFFFFF, second >> 24
            if len(self._buffer) < 8 + size:
                break
            body, self._buffer = self._buffer[8 : 8 + size], self._buffer[8 + size :]
            heard.append(self._frame(first, flags, body))
        return heard

    def _frame(self, first: int, flags: int, body: bytes) -> Heard:
        if not first >> 31:
            return Heard(DATA, first, flags, body)
        assert first >> 16 == 0x8003, "version 3 of control frames"
        kind = first & 0xFFFF
        number, rest = struct.unpack(">I", body[:4])[0], body[4:]
        if kind == SYN_REPLY:
            rest = self._inflate.decompress(rest)
        return Heard(kind, number, flags, rest)
