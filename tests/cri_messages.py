"""Random CRI messages, built from the generated definitions, and both of betterproto's codecs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import betterproto
from hypothesis import strategies as st

INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    # Any number may arrive where an enumeration is declared.
    "enum": (-(2**31), 2**31 - 1),
}
WORDS = st.sampled_from(["", "a", "/", "/a/b", "../a", "runtime/default", "localhost/x", "a\nb", "a\0b", "ü"])
LONG = st.sampled_from(["a" * 300, "/" + "a" * 300, "/a" * 2500, "/" + "../" * 100 + "a", "x" * 9_000])
TEXT = WORDS | LONG | st.text(max_size=12)


def _scalar(proto_type: str) -> st.SearchStrategy[Any]:
    if proto_type in INTEGERS:
        low, high = INTEGERS[proto_type]
        return st.integers(0, 4) | st.sampled_from([low, high]) | st.integers(low, high)
    return {"string": TEXT, "bytes": st.binary(max_size=8), "bool": st.booleans(), "double": st.floats()}[proto_type]


def field_values(of: type[betterproto.Message], name: str) -> st.SearchStrategy[Any]:
    """Values of one field of that message: empty, sensible or extreme."""
    kind: Any = of
    meta = kind._betterproto.meta_by_field_name[name]
    is_list = kind._betterproto.default_gen[name] is list
    if meta.proto_type == "map":
        return st.dictionaries(TEXT.filter(bool), TEXT, max_size=2)
    inner = (
        messages(kind._betterproto.cls_by_field[name]).map(_present)
        if meta.proto_type == "message"
        else _scalar(meta.proto_type)
    )
    return st.lists(inner, max_size=2) if is_list else inner


def _present(message: Any) -> Any:
    message._serialized_on_wire = True
    return message


def messages(of: type[betterproto.Message]) -> st.SearchStrategy[Any]:
    """Messages of that kind, each field absent, empty, sensible or extreme."""
    kind: Any = of

    @st.composite
    def build(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
        message = kind()
        # Fields that are deprecated warn when they are given to the constructor, not when they are set.
        for name in kind._betterproto.meta_by_field_name:
            if draw(st.integers(0, 2)):
                setattr(message, name, draw(field_values(kind, name)))
        return message

    return build()


@contextmanager
def pure_codec() -> Iterator[None]:
    """betterproto's own codec in Python, instead of the one in Rust that replaces it at import."""
    message: Any = betterproto.Message
    parse, serialize = message.parse, message.__bytes__

    def pure_parse(self: Any, data: bytes) -> Any:
        return self.load(BytesIO(data))

    def pure_bytes(self: Any) -> bytes:
        with BytesIO() as stream:
            self.dump(stream)
            return stream.getvalue()

    message.parse, message.__bytes__ = pure_parse, pure_bytes
    try:
        yield
    finally:
        message.parse, message.__bytes__ = parse, serialize
