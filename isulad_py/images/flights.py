"""Work that several pulls wait for runs once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

from isulad_py.host.tasks import TaskOwner
from isulad_py.model.errors import EngineError, Unavailable

T = TypeVar("T")


class Flights(Generic[T]):
    """By key. Work ends when nobody waits for it any more."""

    def __init__(self, tasks: TaskOwner) -> None:
        self._tasks = tasks
        self._flights: dict[str, _Flight[T]] = {}

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The outcome of `work`, or of the same work that another has begun. Where the other's fails, for reasons that
        may be only his (credentials, mirrors), ours is done."""
        flight = self._flights.get(key)
        if flight is not None:
            try:
                return await self._wait(key, flight)
            except EngineError:
                flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(self._tasks.start(_guarded(work()), name=f"layer {key[:19]}"))
            flight.task.add_done_callback(partial(self._on_done, key, flight))
        return await self._wait(key, flight)

    async def _wait(self, key: str, flight: _Flight[T]) -> T:
        flight.waiters += 1
        try:
            # Not shield: it would report the cancellation of a task for which nobody waits any more.
            await asyncio.wait({flight.task})
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        if flight.task.cancelled():
            raise Unavailable("the image service is stopping")
        outcome = flight.task.result()
        if isinstance(outcome, _Failure):
            raise outcome.error
        return outcome

    def _on_done(self, key: str, flight: _Flight[T], _: asyncio.Task[T | _Failure]) -> None:
        self._forget(key, flight)

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Failure:
    """An error on its way to every waiter; for the owner of tasks it is not a death."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Task[T | _Failure]) -> None:
        self.task = task
        self.waiters = 0


async def _guarded(work: Coroutine[Any, Any, T]) -> T | _Failure:
    try:
        return await work
    except Exception as error:
        return _Failure(error)
