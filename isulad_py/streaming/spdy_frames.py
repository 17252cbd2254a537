"""SPDY/3.1 frames: bytes to typed frames and back.

Pure. Source: the SPDY 3.1 draft, section 2.2 and 2.6. Frames of data are handed on as their bytes come in, however long
they say they are, so that none has to be kept; control frames are kept until they are whole, and are bounded.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from isulad_py.streaming.failures import ProtocolError

VERSION: Final = 3
CONTROL_LIMIT_BYTES: Final = 16 * 1024
"""Of a control frame. The longest that clients send opens a stream, with some hundred bytes of headers."""

_FIN: Final = 0x01
_HEAD: Final = struct.Struct(">II")
_PAIR: Final = struct.Struct(">II")
_WORD: Final = struct.Struct(">I")
_CONTROL: Final = 0x80000000 | VERSION << 16


class FrameType(enum.IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetStatus(enum.IntEnum):
    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    UNSUPPORTED_VERSION = 4
    CANCEL = 5
    INTERNAL_ERROR = 6
    FLOW_CONTROL_ERROR = 7
    STREAM_IN_USE = 8
    STREAM_ALREADY_CLOSED = 9


class GoAwayStatus(enum.IntEnum):
    OK = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2


MAX_CONCURRENT_STREAMS: Final = 4
INITIAL_WINDOW_SIZE: Final = 7
"""Settings by their numbers (section 2.6.4)."""


class DataPart(Struct, frozen=True, gc=False):
    """Some bytes of a frame of data; `fin` with the last of the stream."""

    stream_id: int
    data: bytes
    fin: bool


class SynStream(Struct, frozen=True, gc=False):
    stream_id: int
    block: bytes
    """Compressed headers."""
    fin: bool
    unidirectional: bool


class SynReply(Struct, frozen=True, gc=False):
    stream_id: int
    block: bytes
    fin: bool


class Headers(Struct, frozen=True, gc=False):
    stream_id: int
    block: bytes
    fin: bool


class RstStream(Struct, frozen=True, gc=False):
    stream_id: int
    status: int


class Settings(Struct, frozen=True):
    values: tuple[tuple[int, int], ...]
    """Number of the setting, value."""


class Ping(Struct, frozen=True, gc=False):
    ping_id: int


class GoAway(Struct, frozen=True, gc=False):
    last_stream_id: int
    status: int


class WindowUpdate(Struct, frozen=True, gc=False):
    stream_id: int
    """0 is the whole connection."""
    delta: int


Frame: TypeAlias = DataPart | SynStream | SynReply | Headers | RstStream | Settings | Ping | GoAway | WindowUpdate


class FrameReader:
    """Takes bytes as they come. After a ProtocolError it is of no more use."""

    def __init__(self) -> None:
        self._kept = b""
        """The beginning of a head, or of a control frame."""
        self._stream_id = 0
        self._data_left = 0
        self._fin = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """To be run to its end."""
        if self._kept:
            data = self._kept + data
            self._kept = b""
        offset, size = 0, len(data)
        while offset < size:
            if self._data_left:
                part = data if not offset and size <= self._data_left else data[offset : offset + self._data_left]
                offset += len(part)
                self._data_left -= len(part)
                yield DataPart(self._stream_id, part, self._fin and not self._data_left)
                continue
            if size - offset < 8:
                break
            first, second = _HEAD.unpack_from(data, offset)
            length = second & 0xFFFFFF
            if first & 0x80000000:
                _check_head(first, length)
                if size - offset < 8 + length:
                    break
                frame = _control_frame(first & 0xFFFF, second >> 24, data[offset + 8 : offset + 8 + length])
                offset += 8 + length
                if frame is not None:
                    yield frame
                continue
            offset += 8
            if not first:
                raise ProtocolError("spdy: data on stream 0")
            self._stream_id, self._data_left, self._fin = first, length, bool(second >> 24 & _FIN)
            if not length:
                yield DataPart(first, b"", self._fin)
        self._kept = data[offset:]


def _check_head(first: int, length: int) -> None:
    version = first >> 16 & 0x7FFF
    if version != VERSION:
        raise ProtocolError(f"spdy: version {version} instead of {VERSION}")
    if length > CONTROL_LIMIT_BYTES:
        raise ProtocolError(f"spdy: control frame of {length} bytes, more than {CONTROL_LIMIT_BYTES}")


def _control_frame(kind: int, flags: int, body: bytes) -> Frame | None:
    """None for a kind that is to be ignored (section 2.2.1: a recipient must ignore those that it does not know)."""
    reader = _READERS.get(kind)
    if reader is None:
        return None
    try:
        return reader(flags, body)
    except struct.error as error:
        raise ProtocolError(f"spdy: {FrameType(kind).name} of {len(body)} bytes") from error


def _stream_number(body: bytes) -> int:
    number = int(_WORD.unpack_from(body)[0]) & 0x7FFFFFFF
    if not number:
        raise ProtocolError("spdy: control frame for stream 0")
    return number


def _read_syn_stream(flags: int, body: bytes) -> Frame:
    # stream, associated stream, priority and slot: the last three mean nothing here.
    struct.unpack_from(">IIBB", body)
    return SynStream(_stream_number(body), body[10:], bool(flags & _FIN), bool(flags & 0x02))


def _read_syn_reply(flags: int, body: bytes) -> Frame:
    return SynReply(_stream_number(body), body[4:], bool(flags & _FIN))


def _read_headers(flags: int, body: bytes) -> Frame:
    return Headers(_stream_number(body), body[4:], bool(flags & _FIN))


def _read_rst_stream(_flags: int, body: bytes) -> Frame:
    return RstStream(_stream_number(body), _PAIR.unpack(body)[1])


def _read_settings(_flags: int, body: bytes) -> Frame:
    (count,) = _WORD.unpack_from(body)
    if len(body) != 4 + 8 * count:
        raise ProtocolError(f"spdy: SETTINGS of {len(body)} bytes with {count} values")
    pairs = (_PAIR.unpack_from(body, 4 + 8 * index) for index in range(count))
    return Settings(tuple((head & 0xFFFFFF, value) for head, value in pairs))


def _read_ping(_flags: int, body: bytes) -> Frame:
    return Ping(_WORD.unpack(body)[0])


def _read_goaway(_flags: int, body: bytes) -> Frame:
    last, status = _PAIR.unpack(body)
    return GoAway(last & 0x7FFFFFFF, status)


def _read_window_update(_flags: int, body: bytes) -> Frame:
    number, delta = _PAIR.unpack(body)
    return WindowUpdate(number & 0x7FFFFFFF, delta & 0x7FFFFFFF)


_READERS: Final[dict[int, Callable[[int, bytes], Frame]]] = {
    FrameType.SYN_STREAM: _read_syn_stream,
    FrameType.SYN_REPLY: _read_syn_reply,
    FrameType.RST_STREAM: _read_rst_stream,
    FrameType.SETTINGS: _read_settings,
    FrameType.PING: _read_ping,
    FrameType.GOAWAY: _read_goaway,
    FrameType.HEADERS: _read_headers,
    FrameType.WINDOW_UPDATE: _read_window_update,
}


def data_head(stream_id: int, length: int, *, fin: bool = False) -> bytes:
    """What goes before `length` bytes of data."""
    return _HEAD.pack(stream_id, (_FIN << 24 if fin else 0) | length)


def syn_reply(stream_id: int, block: bytes) -> bytes:
    return _control(FrameType.SYN_REPLY, _WORD.pack(stream_id) + block)


def rst_stream(stream_id: int, status: ResetStatus) -> bytes:
    return _control(FrameType.RST_STREAM, _PAIR.pack(stream_id, status))


def ping(ping_id: int) -> bytes:
    return _control(FrameType.PING, _WORD.pack(ping_id))


def goaway(last_stream_id: int, status: GoAwayStatus) -> bytes:
    return _control(FrameType.GOAWAY, _PAIR.pack(last_stream_id, status))


def window_update(stream_id: int, delta: int) -> bytes:
    return _control(FrameType.WINDOW_UPDATE, _PAIR.pack(stream_id, delta))


def settings(*values: tuple[int, int]) -> bytes:
    body = _WORD.pack(len(values)) + b"".join(_PAIR.pack(*value) for value in values)
    return _control(FrameType.SETTINGS, body)


def _control(kind: FrameType, body: bytes) -> bytes:
    return _HEAD.pack(_CONTROL | kind, len(body)) + body
