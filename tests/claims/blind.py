"""Make the product blind for one field or call of CRI, so that a test that claims to show it must fail.

A field that is blind is never given: the product finds it unset, cannot set it, and leaves it out of its answers. A
call that is blind has nobody to serve it. CRI_BLIND names the one (`ContainerConfig.image`, `RuntimeService/Version`);
with this folder in PYTHONPATH it reaches the daemons that tests start, too (see `sitecustomize`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import betterproto
import msgspec
from betterproto.casing import safe_snake_case

VARIABLE = "CRI_BLIND"


def blind(claim: str) -> None:
    """For the rest of this process. Raises StopIteration where CRI has nothing of that name."""
    if "/" in claim:
        _blind_call(safe_snake_case(claim.partition("/")[2]))
    else:
        _blind_field(*claim.split("."))


def _blind_call(method: str) -> None:
    from isulad_py.wire import methods

    served = methods._functions

    def without(servicers: tuple[object, ...]) -> dict[str, Any]:
        return {name: function for name, function in served(servicers).items() if name != method}

    methods._functions = without


def _blind_field(message: str, field: str) -> None:
    from isulad_py.api.runtime import v1 as cri

    kind: Any = next(value for name, value in vars(cri).items() if name.casefold() == message.casefold())
    attribute = next(name for name in kind._betterproto.meta_by_field_name if _same(name, field))
    get, set_, make = kind.__getattribute__, kind.__setattr__, kind.__init__

    def look(self: Any, name: str) -> Any:
        return self._get_field_default(attribute) if name == attribute and _product_asks() else get(self, name)

    def write(self: Any, name: str, value: Any) -> None:
        if name != attribute or not _product_asks():
            set_(self, name, value)

    def begin(self: Any, *values: Any, **fields: Any) -> None:
        if _product_asks():
            fields.pop(attribute, None)
        make(self, *values, **fields)

    kind.__getattribute__, kind.__setattr__, kind.__init__ = look, write, begin
    number = kind._betterproto.meta_by_field_name[attribute].number
    _blind_parsing(kind, number)
    _blind_answers(kind, number)


def _product_asks() -> bool:
    """Whether what called our caller is the product's: tests see what there is."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return name.startswith("isulad_py.") and not name.startswith("isulad_py.api.")


def _same(attribute: str, field: str) -> bool:
    return attribute.replace("_", "").casefold() == field.replace("_", "").casefold()


def _blind_parsing(kind: type[betterproto.Message], number: int) -> None:
    """What is encoded without messages is read by the tests of it."""
    read = betterproto.Message.parse

    def parse(self: Any, data: bytes) -> Any:
        with contextlib.suppress(ValueError, EOFError):  # not a message: for the parser to tell
            data = without(bytes(data), type(self), kind, number)
        return read(self, data)

    betterproto.Message.parse = parse  # type: ignore[method-assign]


def _blind_answers(kind: type[betterproto.Message], number: int) -> None:
    """Answers are encoded field by field where that is fast: what goes out is what counts."""
    from isulad_py.wire import methods

    bind = methods.bind

    def bind_blind(service: Any, *servicers: object, package: str) -> dict[str, methods.Method]:
        replies = {path.rpartition("/")[2]: handler.reply_type for path, handler in service.__mapping__().items()}
        table = bind(service, *servicers, package=package)
        return {path: answer_blind(method, replies[method.short_name]) for path, method in table.items()}

    def answer_blind(method: methods.Method, reply: type[betterproto.Message]) -> methods.Method:
        async def unary(request: Any) -> bytes:
            assert method.unary is not None
            return without(bytes(await method.unary(request)), reply, kind, number)

        @contextlib.contextmanager
        def streaming(request: Any) -> Iterator[AsyncIterator[bytes]]:
            assert method.streaming is not None
            with method.streaming(request) as answers:
                yield (without(bytes(answer), reply, kind, number) async for answer in answers)

        return msgspec.structs.replace(method, unary=method.unary and unary, streaming=method.streaming and streaming)

    methods.bind = bind_blind


def without(data: bytes, of: Any, kind: type[betterproto.Message], number: int) -> bytes:
    """`data`, a message `of` some kind, without the field `number` of each message of `kind` in it."""
    parts = []
    meta = of._betterproto
    for field in betterproto.parse_fields(data):
        if of is kind and field.number == number:
            continue
        name = meta.field_name_by_number.get(field.number, "")
        known = meta.meta_by_field_name.get(name)
        if known is not None and known.proto_type in (betterproto.TYPE_MESSAGE, betterproto.TYPE_MAP):
            inner = without(field.value, meta.cls_by_field[name], kind, number)
            key = betterproto.encode_varint(field.number << 3 | field.wire_type)
            parts.append(key + betterproto.encode_varint(len(inner)) + inner)
        else:
            parts.append(field.raw)
    return b"".join(parts)
