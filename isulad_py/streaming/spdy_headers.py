"""SPDY header blocks: name-value pairs behind zlib, which has one state for each direction of a connection.

Pure. Source: the SPDY 3.1 draft, section 2.6.10.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from isulad_py.streaming.failures import ProtocolError

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status|200 OK|version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TEXT: Final = (
    "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052"
    "03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """The constant of the protocol: 1,423 bytes, which never travel, but decide what the compressed bytes mean."""
    words = [word for group in _WORDS.split("|") for word in (group.split() if group != "200 OK" else [group])]
    return b"".join(struct.pack(">I", len(word)) + word.encode() for word in words) + _TEXT.encode()


DICTIONARY: Final = _dictionary()

BLOCK_LIMIT_BYTES: Final = 16 * 1024
"""Of an inflated block. Clients send some hundred bytes; a few of deflate could become megabytes."""

_LENGTH: Final = struct.Struct(">I")


class HeaderCompressor:
    """Makes the blocks of one direction; each must be sent, in order."""

    def __init__(self) -> None:
        # A small window and little memory: 10 KB instead of 260 KB for each connection, on blocks of a few bytes.
        self._zlib = zlib.compressobj(9, zlib.DEFLATED, 11, 1, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)

    def block(self, headers: Mapping[str, str]) -> bytes:
        plain = [_LENGTH.pack(len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                plain += [_LENGTH.pack(len(text)), text]
        return self._zlib.compress(b"".join(plain)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderInflater:
    """Reads the blocks of one direction; each must be given, in order. After a ProtocolError it is of no more use."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def headers(self, block: bytes) -> dict[str, str]:
        """Names in lower case. Several values of one name are joined with NUL, as they travel."""
        try:
            plain = self._zlib.decompress(block, BLOCK_LIMIT_BYTES + 1)
        except zlib.error as error:
            raise ProtocolError(f"spdy: header block cannot be inflated: {error}") from error
        if len(plain) > BLOCK_LIMIT_BYTES or self._zlib.unconsumed_tail:
            raise ProtocolError(f"spdy: header block is larger than {BLOCK_LIMIT_BYTES} bytes")
        return parse_block(plain)


def parse_block(plain: bytes) -> dict[str, str]:
    count, offset = _number(plain, 0)
    headers: dict[str, str] = {}
    for _ in range(count):
        name, offset = _text(plain, offset)
        value, offset = _text(plain, offset)
        if not name or name != name.lower() or name in headers:
            raise ProtocolError("spdy: header block has an empty, upper-case or repeated name")
        headers[name] = value
    if offset != len(plain):
        raise ProtocolError("spdy: header block is longer than its headers")
    return headers


def _number(plain: bytes, offset: int) -> tuple[int, int]:
    if offset + 4 > len(plain):
        raise ProtocolError("spdy: header block ends too early")
    return _LENGTH.unpack_from(plain, offset)[0], offset + 4


def _text(plain: bytes, offset: int) -> tuple[str, int]:
    length, offset = _number(plain, offset)
    if offset + length > len(plain):
        raise ProtocolError("spdy: header block ends too early")
    return plain[offset : offset + length].decode("latin-1"), offset + length
