"""The table of methods: from a call's path to what serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias

import betterproto
from betterproto.casing import safe_snake_case
from grpclib.const import Handler
from msgspec import Struct

from isulad_py.wire.codec import Answer
from isulad_py.wire.status import Outcome

POLLED: Final = frozenset({"Version", "RuntimeConfig", "ExecSync"})
ENDLESS: Final = frozenset({"GetContainerEvents"})
"""Streams that end only with their client; the others are lists in several messages."""

Unary: TypeAlias = Callable[[Any], Awaitable[Answer]]
Streaming: TypeAlias = Callable[[Any], AbstractContextManager[AsyncIterator[Answer]]]
"""Entering it subscribes: only then is the client told that the stream has begun."""


class Service(Protocol):
    """A generated service: its methods by path."""

    def __mapping__(self) -> dict[str, Handler]: ...


class Method(Struct, frozen=True, kw_only=True):
    name: str
    """`package.Service/Method`."""
    request: type[betterproto.Message]
    unary: Unary | None = None
    streaming: Streaming | None = None
    """Where both are None, the method is known and not reached yet."""
    refused: Callable[[Outcome], Answer | Outcome] | None = None
    """How its clients are told of an error, where that is not by its status: an answer, or another status."""

    @property
    def short_name(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def polled(self) -> bool:
        """Comes by the second and changes nothing: not worth a line in the log each time."""
        name = self.short_name
        return name in POLLED or name.startswith(("List", "Stream")) or name.endswith(("Status", "Stats", "Info"))

    @property
    def endless(self) -> bool:
        return self.short_name in ENDLESS


def bind(service: Service, *servicers: object, package: str) -> dict[str, Method]:
    """Every method of a generated service by its path, served by that servicer's coroutine or context manager which has
    the same name in snake case (`import_` for Import). `package` replaces the service's own: one servicer can answer
    for several versions.

    Raises ValueError for a public name of a servicer that is no method of the service, or that two of them have.
    """
    table = {}
    served = _functions(servicers)
    for path, handler in service.__mapping__().items():
        _, full_name, short_name = path.split("/")
        name = f"{package}.{full_name.rpartition('.')[2]}/{short_name}"
        function = served.pop(safe_snake_case(short_name), None)
        streaming = handler.cardinality.server_streaming
        table[f"/{name}"] = Method(
            name=name,
            request=handler.request_type,
            unary=None if streaming else function,
            streaming=function if streaming else None,
        )
    if served:
        raise ValueError(f"no rpc of {type(service).__name__}: {', '.join(sorted(served))}")
    return table


def _functions(servicers: tuple[object, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for servicer in servicers:
        for name in dir(servicer):
            if not name.startswith("_"):
                if name in found:
                    raise ValueError(f"two servicers answer {name}")
                found[name] = getattr(servicer, name)
    return found
