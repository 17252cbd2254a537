"""New limits for containers that are there: all of them or none, whatever happens meanwhile."""

from __future__ import annotations

from functools import partial

import msgspec
import structlog

from isulad_py.engine.locks import Locks
from isulad_py.engine.registry import Registry
from isulad_py.engine.specs import Specs
from isulad_py.engine.undo import Undo
from isulad_py.model.container import ContainerRecord
from isulad_py.model.errors import EngineError, FailedPrecondition
from isulad_py.model.ids import ContainerId
from isulad_py.model.lifecycle import can_update
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)


class Updates:
    def __init__(
        self, *, registry: Registry, runtime: ContainerRuntime, specs: Specs, locks: Locks, tasks: Tasks
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._specs = specs
        self._locks = locks
        self._tasks = tasks

    async def run(self, container_id: str, wanted: Resources) -> None:
        """CRI UpdateContainerResources: all of it or nothing; what is not given stays as it is."""
        record = self._registry.containers.require(container_id)
        async with self._locks.of(record.id):
            record = self._registry.containers.require(record.id)
            if not can_update(record.state):
                raise FailedPrecondition(f"container {record.id} is {record.state.value}: nothing to update")
            if record.to_restore:
                raise FailedPrecondition(f"container {record.id} is restored by its start: nothing to update yet")
            wanted = with_swap(record.resources, wanted)
            merged = merge(record.resources, wanted)
            self._specs.check_limits(merged)
            effective = self._whole(merged, wanted)
            async with Undo(tasks=self._tasks) as undo:
                undo.push("put the record back", partial(self._retell, record))
                await self._amend(record.id, updating_to=wanted)
                undo.push("put limits back", await self._runtime.update(record.id, record.runtime_handler, effective))
                await self._amend(record.id, resources=merged, updating_to=None)

    def _whole(self, merged: Resources, wanted: Resources) -> Resources:
        """All limits again: systemd, told of one by the runtime, writes over those that it was not told of (crun 1.8
        tells few, none the files of `unified`). A score is each process's own, and not undone by that."""
        return self._specs.effective(msgspec.structs.replace(merged, oom_score_adj=wanted.oom_score_adj))

    async def _retell(self, former: ContainerRecord) -> None:
        """Also where the caller went away while the record was written, which goes on all the same (registry)."""
        now = self._registry.containers.require(former.id)
        if (now.resources, now.updating_to) != (former.resources, None):
            await self._amend(former.id, resources=former.resources, updating_to=None)

    async def finish(self, record: ContainerRecord, wanted: Resources) -> None:
        """One that was under way when a former daemon ended: how far it came, nobody knows, so it is made again."""
        merged = merge(record.resources, wanted)
        try:
            await self._runtime.update(record.id, record.runtime_handler, self._whole(merged, wanted))
        except EngineError as error:
            log.warning("update that was under way not finished", container=record.id, error=str(error))
            merged = record.resources
        await self._amend(record.id, resources=merged, updating_to=None)

    async def _amend(self, container_id: ContainerId, **facts: object) -> None:
        await self._registry.containers.amend(container_id, lambda old: msgspec.structs.replace(old, **facts))


def merge(old: Resources, new: Resources) -> Resources:
    """`old` with every field that `new` specifies, every page size and every file of `unified`."""
    given = {name: value for name in Resources.__struct_fields__ if (value := getattr(new, name))}
    if new.hugepage_limits:
        limits = {limit.page_size: limit for limit in (*old.hugepage_limits, *new.hugepage_limits)}
        given["hugepage_limits"] = tuple(limits.values())
    if new.unified:
        given["unified"] = old.unified | new.unified
    return msgspec.structs.replace(old, **given)


def with_swap(old: Resources, new: Resources) -> Resources:
    """`new`, with the limit of memory and swap together where a new memory limit moves it along: a container without
    swap (both limits the same, as kubelets send them) stays without."""
    without = old.memory_swap_limit_bytes == old.memory_limit_bytes > 0
    if not without or not new.memory_limit_bytes or new.memory_swap_limit_bytes:
        return new
    return msgspec.structs.replace(new, memory_swap_limit_bytes=new.memory_limit_bytes)
