"""Background work with an owner and a name."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Tasks(Protocol):
    """Owner of the engine's background tasks: one that dies of an error is logged with its name and reported to the
    daemon, never lost; all are ended, and awaited, when the daemon stops."""

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]: ...
