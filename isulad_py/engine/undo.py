"""Rollback of a call that failed or was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final

import structlog

from isulad_py.model.errors import EngineError
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

DEADLINE_SECONDS: Final = 120.0
UNDO: Final = "undo"
"""Name of its tasks: a daemon that stops waits for them."""

Step = Callable[[], Awaitable[None]]


class Undo:
    """A ledger of described steps, run newest first when the block ends with an error or a cancellation.

    Every step is idempotent and works from an id alone, so it is pushed *before* what it undoes: an acquisition that is
    cut off in the middle is then undone as well. A failing step does not stop the others; it is told in the error.
    """

    def __init__(self, *, tasks: Tasks) -> None:
        self._tasks = tasks
        self._steps: list[tuple[str, Step]] = []
        self.failures: list[BaseException] = []

    def push(self, what: str, step: Step) -> None:
        self._steps.append((what, step))

    async def __aenter__(self) -> Undo:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not self._steps:
            return
        unwinding = self._tasks.start(self._unwind(), name=UNDO)
        cancelled: asyncio.CancelledError | None = None
        while not unwinding.done():
            try:
                await asyncio.shield(unwinding)
            except asyncio.CancelledError as again:
                if unwinding.cancelled():
                    break
                cancelled = again
        if isinstance(error, EngineError):
            error.cleanup.extend(self.failures)
        if cancelled is not None and not isinstance(error, asyncio.CancelledError):
            raise cancelled

    async def _unwind(self) -> None:
        for what, step in reversed(self._steps):
            try:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    await step()
            except Exception as error:
                known = isinstance(error, EngineError | OSError | TimeoutError)
                log.warning("undo failed", step=what, error=str(error) or type(error).__name__, exc_info=not known)
                self.failures.append(error)
