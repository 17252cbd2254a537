"""Requests that are nearly right: as a kubelet sends them, but for a few fields, at any depth, that are anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import betterproto
from hypothesis import strategies as st

from tests.cri_messages import field_values

MOST_CHANGES = 4

Path = tuple[str, ...]


def paths(of: type[betterproto.Message], above: Path = ()) -> Iterator[tuple[Path, type[betterproto.Message]]]:
    """Every field of a message and of the messages in it, each with the message that has it."""
    kind: Any = of
    for name, meta in kind._betterproto.meta_by_field_name.items():
        yield (*above, name), kind
        if meta.proto_type == "message" and kind._betterproto.default_gen[name] is not list:
            yield from paths(kind._betterproto.cls_by_field[name], (*above, name))


def put(message: Any, path: Path, value: Any) -> None:
    """Sets a field, with every message on the way to it present."""
    for name in path[:-1]:
        message._serialized_on_wire = True
        message = getattr(message, name)
    message._serialized_on_wire = True
    setattr(message, path[-1], value)


def near(base: Callable[[], Any], *, but: Callable[[Path], bool] = lambda _: False) -> st.SearchStrategy[Any]:
    """`base`, a new message each time, with up to MOST_CHANGES fields changed; none of those that `but` names."""
    places = [place for place in paths(type(base())) if not but(place[0])]

    @st.composite
    def build(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
        message = base()
        for path, kind in draw(st.lists(st.sampled_from(places), max_size=MOST_CHANGES)) if places else ():
            put(message, path, draw(field_values(kind, path[-1])))
        return message

    return build()
