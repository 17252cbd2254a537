"""The only writer of "exited"."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import structlog

from isulad_py.engine.events import Events
from isulad_py.engine.locks import Locks
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerRecord, ExitFact, Processes
from isulad_py.model.errors import EngineError, NotFound
from isulad_py.model.events import EventKind
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

RETRY_SECONDS = 1.0


class Exits:
    """Watches every container that has a process, from its creation or from the daemon's start to its end."""

    def __init__(
        self, *, registry: Registry, runtime: ContainerRuntime, events: Events, locks: Locks, tasks: Tasks, clock: Clock
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._events = events
        self._locks = locks
        self._tasks = tasks
        self._clock = clock
        self._watches: dict[str, asyncio.Task[None]] = {}

    def watch(self, record: ContainerRecord) -> None:
        """Starts the watch of a container; one that is watched already stays so."""
        if record.id not in self._watches and record.exit is None:
            self._start(record.id, self._until_exit(record))

    def watch_pause(self, pod_id: PodId, processes: Processes, on_end: Callable[[PodId], Awaitable[None]]) -> None:
        """Starts the watch of a pod's pause container: without it the pod is not ready any more."""
        if pod_id not in self._watches:
            self._start(pod_id, self._until_pause_ends(pod_id, processes, on_end))

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.start(work, name=f"exit:{key[:12]}")
        self._watches[key] = task
        task.add_done_callback(lambda _: self._watches.pop(key, None))

    def unwatch(self, key: str) -> None:
        """Ends a watch without recording anything; for what is being removed."""
        task = self._watches.pop(key, None)
        if task is not None:
            task.cancel()

    async def wait(self, container_id: ContainerId) -> None:
        """Returns when the container's end is on record, or the container is gone."""
        task = self._watches.get(container_id)
        if task is not None:
            await asyncio.wait([task])

    async def record_exit(self, container_id: ContainerId, fact: ExitFact) -> ContainerRecord:
        """Writes the end and tells of it; an end that is on record already stays as it is."""

        def end(old: ContainerRecord) -> ContainerRecord:
            if old.exit is not None:
                return old
            started_at = min(old.started_at, fact.finished_at) if old.started_at else 0
            return msgspec.structs.replace(old, exit=fact, started_at=started_at, paused_at=0)

        before = self._registry.containers.get(container_id)
        record = await self._registry.containers.amend(container_id, end)
        if before is not None and before.exit is None:
            self._events.announce(EventKind.STOPPED, container_id, record.pod_id)
        return record

    async def _until_exit(self, record: ContainerRecord) -> None:
        fact = await self._outcome(record.id, record.processes, record.cgroup_path)
        # Under the container's lock, so that a start in progress is on record before its end is.
        async with self._locks.of(record.id):
            while not await self._recorded(record.id, fact):
                await self._clock.sleep(RETRY_SECONDS)

    async def _recorded(self, container_id: ContainerId, fact: ExitFact) -> bool:
        """False while the record cannot be written (disk full): an exit is not forgotten, it is tried again."""
        try:
            await self.record_exit(container_id, fact)
        except NotFound:
            return True
        except EngineError as error:
            log.error("exit not recorded, trying again", container=container_id, error=str(error))
            return False
        return True

    async def _until_pause_ends(
        self, pod_id: PodId, processes: Processes, on_end: Callable[[PodId], Awaitable[None]]
    ) -> None:
        await self._outcome(ContainerId(pod_id), processes)
        while not await self._told(pod_id, on_end):
            await self._clock.sleep(RETRY_SECONDS)

    @staticmethod
    async def _told(pod_id: PodId, on_end: Callable[[PodId], Awaitable[None]]) -> bool:
        try:
            await on_end(pod_id)
        except EngineError as error:
            log.error("end of a pause container not recorded, trying again", pod=pod_id, error=str(error))
            return False
        return True

    async def _outcome(self, container_id: ContainerId, processes: Processes, cgroup_path: str = "") -> ExitFact:
        while True:
            try:
                return await self._runtime.wait_exit(container_id, processes, cgroup_path=cgroup_path)
            except EngineError as error:
                log.error("exit watch failed, trying again", container=container_id, error=str(error))
            except Exception:  # of no known class (no descriptors left): who runs must not go unwatched for ever
                log.exception("exit watch failed, trying again", container=container_id)
            await self._clock.sleep(RETRY_SECONDS)
