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
TEXT = WORDS | st.text(max_size=12)


def _scalar(proto_type: str) -> st.SearchStrategy[Any]:
    if proto_type in INTEGERS:
        low, high = INTEGERS[proto_type]
        return st.integers(0, 4) | st.sampled_from([low, high]) | st.integers(low, high)
    return {"string": TEXT, "bytes": st.binary(max_size=8), "bool": st.booleans(), "double": st.floats()}[proto_type]


def messages(of: type[betterproto.Message]) -> st.SearchStrategy[Any]:
    """Messages of that kind, each field absent, empty, sensible or extreme."""
    kind: Any = of

    @st.composite
    def build(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
        message = kind()
        # Fields that are deprecated warn when they are given to the constructor, not when they are set.
        for name, meta in kind._betterproto.meta_by_field_name.items():
            if draw(st.integers(0, 2)) == 0:
                continue
            is_list = kind._betterproto.default_gen[name] is list
            if meta.proto_type == "map":
                value: Any = draw(st.dictionaries(TEXT.filter(bool), TEXT, max_size=2))
            elif meta.proto_type == "message":
                inner = messages(kind._betterproto.cls_by_field[name])
                value = draw(st.lists(inner, max_size=2) if is_list else inner)
                for part in value if is_list else [value]:
                    part._serialized_on_wire = True
            else:
                scalar = _scalar(meta.proto_type)
                value = draw(st.lists(scalar, max_size=2) if is_list else scalar)
            setattr(message, name, value)
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
