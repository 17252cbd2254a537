"""One lock for each object, and one flight for each piece of work that must not run twice at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from isulad_py.ports.tasks import Tasks

T = TypeVar("T")


class Locks:
    """A lock by key, kept only while somebody holds it or waits for it. Never held during a grace period, a pull, a
    CNI call or a stream."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(key, (None, 0))
        lock = lock or asyncio.Lock()
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)


class SingleFlight(Generic[T]):
    """Work by key: who asks while it is under way gets its outcome.

    A caller that goes away does not end it, unless `abandon` says that work for which nobody waits is pointless.
    """

    def __init__(self, *, tasks: Tasks, name: str, abandon: bool = False) -> None:
        self._tasks = tasks
        self._name = name
        self._abandon = abandon
        self._flights: dict[str, _Flight[T]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._flights

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        flight = self._flights.get(key)
        if flight is None:
            task = self._tasks.start(_guarded(work()), name=f"{self._name}:{key[:12]}")
            flight = self._flights[key] = _Flight(task)
            task.add_done_callback(lambda _: self._forget(key, task))
        flight.waiters += 1
        try:
            outcome = await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if self._abandon and not flight.waiters and not flight.task.done():
                self._forget(key, flight.task)
                flight.task.cancel()
        if isinstance(outcome, _Failure):
            raise outcome.error
        return outcome

    def _forget(self, key: str, task: asyncio.Task[T | _Failure]) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.task is task:
            del self._flights[key]


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Task[T | _Failure]) -> None:
        self.task = task
        self.waiters = 0


class _Failure:
    """An error on its way to every caller; for the owner of tasks it is not a death."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _guarded(work: Coroutine[Any, Any, T]) -> T | _Failure:
    try:
        return await work
    except Exception as error:
        return _Failure(error)
