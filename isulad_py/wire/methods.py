"""The table of methods: from a call's path to what serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias

import betterproto
from betterproto.casing import snake_case
from grpclib.const import Handler
from msgspec import Struct

from isulad_py.wire.codec import Answer

POLLED: Final = frozenset({"Version", "RuntimeConfig", "ExecSync"})

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

    @property
    def short_name(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def polled(self) -> bool:
        """Comes by the second and changes nothing: not worth a line in the log each time."""
        name = self.short_name
        return name in POLLED or name.startswith(("List", "Stream")) or name.endswith(("Status", "Stats", "Info"))


def bind(service: Service, servicer: object, *, package: str) -> dict[str, Method]:
    """Every method of a generated service by its path, served by the servicer's coroutine or context manager of the
    same name in snake case. `package` replaces the service's own: one servicer can answer for several versions.

    Raises ValueError for a public name of the servicer that is no method of the service.
    """
    table = {}
    served = {name for name in dir(servicer) if not name.startswith("_")}
    for path, handler in service.__mapping__().items():
        _, full_name, short_name = path.split("/")
        name = f"{package}.{full_name.rpartition('.')[2]}/{short_name}"
        function = getattr(servicer, snake_case(short_name), None)
        served.discard(snake_case(short_name))
        streaming = handler.cardinality.server_streaming
        table[f"/{name}"] = Method(
            name=name,
            request=handler.request_type,
            unary=None if streaming else function,
            streaming=function if streaming else None,
        )
    if served:
        raise ValueError(f"{type(servicer).__name__} has what is no rpc: {', '.join(sorted(served))}")
    return table
