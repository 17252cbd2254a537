"""What happened, told to whoever subscribed (CRI GetContainerEvents)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

from isulad_py.engine.registry import Registry
from isulad_py.model.errors import ResourceExhausted
from isulad_py.model.events import EventKind, LifecycleEvent
from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodRecord
from isulad_py.ports.clock import Clock

QUEUE_LENGTH: Final = 1024
MOST_SUBSCRIBERS: Final = 64


class Subscription:
    """An async iterator of events. One that is read too slowly is cut off with ResourceExhausted, so that it holds
    back nobody and is never silently incomplete."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[LifecycleEvent] = asyncio.Queue(QUEUE_LENGTH)
        self._overrun = False

    def offer(self, event: LifecycleEvent) -> None:
        if self._overrun:
            return  # nothing may come behind the gap
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._overrun = True

    def __aiter__(self) -> AsyncIterator[LifecycleEvent]:
        return self

    async def __anext__(self) -> LifecycleEvent:
        if self._overrun and self._queue.empty():
            raise ResourceExhausted(f"events are read too slowly: more than {QUEUE_LENGTH} were waiting")
        return await self._queue.get()


class Events:
    def __init__(self, *, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._subscriptions: set[Subscription] = set()

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        if len(self._subscriptions) >= MOST_SUBSCRIBERS:
            raise ResourceExhausted(f"there are {MOST_SUBSCRIBERS} subscribers to events already")
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def announce(self, kind: EventKind, subject_id: str, pod_id: PodId, *, last: PodRecord | None = None) -> None:
        """Tells of a pod (its id twice) or a container, with the pod's whole state at this moment; `last` is that of
        a pod which is gone already: without it a kubelet would pass the event over."""
        if not self._subscriptions:
            return
        event = LifecycleEvent(
            kind=kind,
            subject_id=subject_id,
            at=self._clock.now_ns(),
            pod=self._registry.pods.get(pod_id) or last,
            containers=tuple(self._registry.containers_of(pod_id)),
        )
        for subscription in self._subscriptions:
            subscription.offer(event)
