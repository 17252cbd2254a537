"""The wire form of messages that come by the thousand, written field by field (protobuf, encoding). Pure.

Building a message object for each of them costs ten times as much. A field that is zero or empty is left out, as
proto3 has it; a message that is written is present, empty or not.
"""

from __future__ import annotations

import struct
from typing import Final

_VARINT, _FIXED_64, _LENGTH_DELIMITED = 0, 1, 2
_MOST_FIELDS: Final = 128
_DOUBLE: Final = struct.Struct("<d")
_UINT64: Final = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Of an integer of 64 bits; a negative one is its two's complement."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    value &= _UINT64
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(128))


def _keys(wire_type: int) -> tuple[bytes, ...]:
    return tuple(varint(field << 3 | wire_type) for field in range(_MOST_FIELDS))


_VARINT_KEYS: Final = _keys(_VARINT)
_DOUBLE_KEYS: Final = _keys(_FIXED_64)
_LENGTH_KEYS: Final = _keys(_LENGTH_DELIMITED)
_BOXED_KEY: Final = _VARINT_KEYS[1]


def number(field: int, value: int) -> bytes:
    """An integer or the number of an enumeration."""
    return _VARINT_KEYS[field] + varint(value) if value else b""


def boxed(field: int, value: int | None) -> bytes:
    """A UInt64Value, in which zero is a value and None is none. What is below zero counts as zero."""
    if value is None:
        return b""
    if value <= 0:
        return _LENGTH_KEYS[field] + b"\0"
    inner = varint(value)
    return _LENGTH_KEYS[field] + _ONE_BYTE[len(inner) + 1] + _BOXED_KEY + inner


def real(field: int, value: float) -> bytes:
    """A double."""
    return _DOUBLE_KEYS[field] + _DOUBLE.pack(value) if value else b""


def text(field: int, value: str) -> bytes:
    return message(field, value.encode()) if value else b""


def texts(field: int, values: tuple[str, ...]) -> bytes:
    """A repeated string, whose elements may be empty."""
    return b"".join([message(field, value.encode()) for value in values])


def message(field: int, *parts: bytes) -> bytes:
    """A message made of its fields, in order."""
    inner = b"".join(parts)
    return _LENGTH_KEYS[field] + varint(len(inner)) + inner
