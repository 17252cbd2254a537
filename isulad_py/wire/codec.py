"""Messages to bytes and back. What is encoded already passes through."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeAlias, TypeVar, cast

import betterproto

from isulad_py.model.errors import InvalidInput, ResourceExhausted

M = TypeVar("M", bound=betterproto.Message)

Answer: TypeAlias = "betterproto.Message | bytes"
"""A message, or one that is encoded already."""

FIELDS_LIMIT: Final = 60_000
"""Of one request, at all depths. Two bytes can stand for a message that takes 45 us and half a kilobyte to make, so
that the bytes alone bound nothing: a megabyte of them would take 20 s. A variable of the environment is three: there
are seven for each service of a namespace in a kubelet's request, and thousands of services."""
SMALL_BYTES: Final = 2048
"""A request that is not worth counting."""
MANY_FIELDS: Final = 1000
"""Decoded beside the loop."""

_VARINT, _FIXED_64, _LENGTH_DELIMITED, _FIXED_32 = 0, 1, 2, 5
_NESTED: Final = frozenset({betterproto.TYPE_MESSAGE, betterproto.TYPE_MAP})
_PACKED: Final = frozenset(betterproto.PACKED_TYPES)


async def decode(data: bytes, kind: type[M]) -> M:
    """Raises InvalidInput where `data` is no message of that kind, ResourceExhausted where it has too many fields."""
    if len(data) > SMALL_BYTES and count_fields(data, kind) > MANY_FIELDS:
        return await asyncio.to_thread(decode_now, data, kind)
    return decode_now(data, kind)


def decode_now(data: bytes, kind: type[M]) -> M:
    """As `decode`, without counting."""
    try:
        return kind().parse(data)
    except Exception as error:  # the codecs raise a dozen kinds, none of them for anything but the bytes
        raise InvalidInput(f"request: not a valid {kind.__name__}: {error}") from error


def count_fields(data: bytes, kind: type[betterproto.Message]) -> int:
    """Fields of a message and of those in it; not exact where the bytes are no such message, which decoding tells."""
    total = 0
    waiting: list[tuple[bytes, type[betterproto.Message]]] = [(data, kind)]
    while waiting:
        part, of = waiting.pop()
        meta: betterproto.ProtoClassMetadata = cast("Any", of)._betterproto
        try:
            for field in betterproto.parse_fields(part):
                total += 1
                name = meta.field_name_by_number.get(field.number, "")
                known = meta.meta_by_field_name.get(name)
                if known is not None and field.wire_type == _LENGTH_DELIMITED:
                    if known.proto_type in _NESTED:
                        waiting.append((field.value, meta.cls_by_field[name]))
                    elif known.proto_type in _PACKED:
                        total += len(field.value) // 8
                if total > FIELDS_LIMIT:
                    raise ResourceExhausted(f"request: more than {FIELDS_LIMIT} fields")
        except (ValueError, EOFError):
            continue
    return total


def encode(answer: Answer) -> bytes:
    return answer if isinstance(answer, bytes) else bytes(answer)


def element(number: int, item: bytes) -> bytes:
    """One encoded message as an element of repeated field `number`.

    A repeated field's wire form is the concatenation of its elements' (protobuf, encoding), so that elements can be
    kept and joined.
    """
    return betterproto.encode_varint(number << 3 | _LENGTH_DELIMITED) + betterproto.encode_varint(len(item)) + item
