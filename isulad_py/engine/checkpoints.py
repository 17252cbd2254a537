"""Checkpoints of running containers: what their processes and their root file systems are, as one archive."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Final

import msgspec
import structlog

from isulad_py.engine.checkpoint_documents import documents
from isulad_py.engine.registry import Registry
from isulad_py.engine.undo import Undo
from isulad_py.model.container import ContainerRecord, Processes
from isulad_py.model.errors import DeadlineExceeded, EngineError, FailedPrecondition, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.model.lifecycle import can_exec
from isulad_py.ports.checkpoints import Checkpointer, CheckpointFiles, Dump
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.storage import RootFilesystems
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

DEFAULT_SECONDS: Final = 120.0
"""As long as a kubelet waits that has not said how long."""


class Checkpoints:
    """The container stands still while its state is taken, and goes on afterwards, whatever came of it.

    What is under way is on its record, so that the next daemon lets a container go on that this one has halted.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        runtime: ContainerRuntime,
        checkpointer: Checkpointer,
        files: CheckpointFiles,
        rootfs: RootFilesystems,
        tasks: Tasks,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._checkpointer = checkpointer
        self._files = files
        self._rootfs = rootfs
        self._tasks = tasks
        self._clock = clock
        self._under_way: set[ContainerId] = set()

    async def container(self, container_id: str, location: str, timeout_seconds: float = 0) -> None:
        """CRI CheckpointContainer; no timeout is DEFAULT_SECONDS. The archive appears when it is complete.

        Raises NotFound, FailedPrecondition naming what is in the way, InvalidInput or AlreadyExists naming `location`,
        DeadlineExceeded. Then there is no archive.
        """
        record = self._registry.containers.require(container_id)
        if not can_exec(record.state):
            raise FailedPrecondition(f"container {record.id} is {record.state.value}, not running")
        if self._registry.pods.require(record.pod_id).users is not None:
            raise FailedPrecondition(f"CheckpointContainer: container {record.id} is in a user namespace")
        await self.require_criu("CheckpointContainer", record.runtime_handler)
        if record.id in self._under_way:
            raise FailedPrecondition(f"container {record.id} is being checkpointed already")
        seconds = timeout_seconds or DEFAULT_SECONDS
        self._under_way.add(record.id)
        try:
            async with asyncio.timeout(seconds):
                await self._checkpoint(record, location)
        except TimeoutError as error:
            raise DeadlineExceeded(f"checkpoint of container {record.id}: not done within {seconds:g} s") from error
        finally:
            self._under_way.discard(record.id)

    async def require_criu(self, call: str, handler: str) -> None:
        """FailedPrecondition where containers of the handler cannot be checkpointed or restored."""
        obstacle = await self._checkpointer.obstacle(handler)
        if obstacle:
            raise FailedPrecondition(f"{call}: {obstacle}")

    async def _checkpoint(self, record: ContainerRecord, location: str) -> None:
        async with Undo(tasks=self._tasks) as undo:
            undo.push("discard the checkpoint", partial(self._settle, record.id, location))
            await self._note(record.id, location)
            await self._files.begin(record.id, location)
            undo.push("let the container go on", partial(self._resume, record))
            await self._runtime.pause(record.id, record.runtime_handler)
            place = self._files.place(record.id)
            await self._checkpointer.dump(Dump(id=record.id, handler=record.runtime_handler, place=place))
            await self._files.keep_changes(record.id, await self._rootfs.changes(record.id))
            await self._resume(record)
            spec = await self._runtime.bundle_spec(record.id)
            pod = self._registry.pods.require(record.pod_id)
            about = documents(record, pod, spec, self._clock.now_ns())
            await self._files.write(record.id, location, about, record.log_path)
        await self._settle(record.id, location)

    async def _resume(self, record: ContainerRecord) -> None:
        """Idempotent. CRIU itself lets it go on where it fails, and one that has ended needs none."""
        with contextlib.suppress(FailedPrecondition, NotFound):
            await self._runtime.resume(record.id, record.runtime_handler)

    async def _settle(self, container_id: ContainerId, location: str) -> None:
        """Nothing is kept but the archive, where it is complete."""
        await self._files.discard(container_id, location)
        with contextlib.suppress(NotFound):  # it was removed meanwhile
            await self._note(container_id, "")

    async def _note(self, container_id: ContainerId, location: str) -> ContainerRecord:
        return await self._registry.containers.amend(
            container_id, lambda old: msgspec.structs.replace(old, checkpoint_to=location)
        )

    async def restored(self, container_id: ContainerId) -> Processes:
        """As ports.checkpoints.Checkpointer.restored."""
        return await self._checkpointer.restored(container_id)

    async def repair(self, record: ContainerRecord) -> ContainerRecord:
        """Ends what a former daemon was about when it died, and lets the container go on."""
        try:
            await self._checkpointer.end_dump(self._files.place(record.id))
            await self._resume(record)
            await self._files.discard(record.id, record.checkpoint_to)
        except EngineError as error:
            log.error("checkpoint not cleared: tried again at the next start", container=record.id, error=str(error))
            return record
        log.warning("a checkpoint was cut off", container=record.id, location=record.checkpoint_to)
        return await self._note(record.id, "")
