"""Containers: create, start, stop, remove, update."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import signal
from functools import partial
from typing import Final

import msgspec
import structlog

from isulad_py.engine.events import Events
from isulad_py.engine.exits import Exits
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.locks import Locks, SingleFlight
from isulad_py.engine.registry import Registry, container_name
from isulad_py.engine.restores import Restores, Source
from isulad_py.engine.specs import Built, Specs
from isulad_py.engine.undo import Undo
from isulad_py.engine.updates import Updates
from isulad_py.model.container import ContainerConfig, ContainerRecord, ContainerState, ExitFact, Processes
from isulad_py.model.errors import (
    DeadlineExceeded,
    EngineError,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from isulad_py.model.events import EventKind
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.model.lifecycle import can_start, can_stop
from isulad_py.model.pod import PodConfig, PodRecord, PodState, PodUsers
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode, NamespaceOptions
from isulad_py.model.signals import stop_signal_number
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import ContainerRuntime, Launch, Remembered
from isulad_py.ports.storage import RootFilesystems, RootfsRequest
from isulad_py.ports.tasks import Tasks
from isulad_py.spec.cdi import wanted_devices
from isulad_py.spec.resource_classes import refuse_classes

log = structlog.get_logger(__name__)

KILL_SECONDS: Final = 60.0
"""How long a killed container may take to be gone: its processes can be in uninterruptible sleep."""
START_FAILED_CODE: Final = 128


class Containers:
    def __init__(
        self,
        *,
        registry: Registry,
        runtime: ContainerRuntime,
        rootfs: RootFilesystems,
        restores: Restores,
        updates: Updates,
        specs: Specs,
        exits: Exits,
        events: Events,
        handlers: Handlers,
        locks: Locks,
        tasks: Tasks,
        clock: Clock,
        boot_id: str,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._rootfs = rootfs
        self._restores = restores
        self._updates = updates
        self._specs = specs
        self._exits = exits
        self._events = events
        self._handlers = handlers
        self._locks = locks
        self._tasks = tasks
        self._clock = clock
        self._boot_id = boot_id
        self._starts: SingleFlight[None] = SingleFlight(tasks=tasks, name="start container")
        self._removals: SingleFlight[None] = SingleFlight(tasks=tasks, name="remove container")
        self.creating: set[ContainerId] = set()
        """Being created right now: not for the sweeper."""

    async def create(self, pod_id: str, config: ContainerConfig, pod_config: PodConfig | None) -> ContainerId:
        """A created container (CRI CreateContainer). One that fails or is cancelled leaves nothing behind."""
        pod = self._registry.pods.require(pod_id)
        if pod.state is not PodState.READY:
            raise FailedPrecondition(f"pod_sandbox_id: pod {pod.id} is not ready")
        self._handlers.resolve(config.image.runtime_handler)
        check_namespaces(pod.config.security.namespaces, config.security.namespaces)
        wanted_devices(config)  # for its refusals, before anything is made
        refuse_classes(config, pod.config.annotations)
        handler = self._handlers.resolve(pod.runtime_handler)
        async with self._restores.source(config, handler, remapped=pod.users is not None) as source:
            return await self._create(pod, source)

    async def _create(self, pod: PodRecord, source: Source) -> ContainerId:
        await self._specs.check_container(source.config, pod)
        container_id = ContainerId(new_id())
        record = self._first_record(container_id, pod, source)
        self.creating.add(container_id)
        try:
            async with Undo(tasks=self._tasks) as undo:
                undo.push("forget the container", partial(self._abandon, container_id, undo))
                await self._registry.containers.add(record, name=container_name(record))
                await self._build(record, pod, source, undo)
        finally:
            self.creating.discard(container_id)
        self._events.announce(EventKind.CREATED, container_id, pod.id)
        return container_id

    def _first_record(self, container_id: ContainerId, pod: PodRecord, source: Source) -> ContainerRecord:
        config, image, log_path = source.config, source.image, ""
        if config.log_path and pod.config.log_directory:
            log_path = posixpath.join(pod.config.log_directory, config.log_path)
        return ContainerRecord(
            id=container_id,
            pod_id=pod.id,
            config=config,
            runtime_handler=self._handlers.resolve(pod.runtime_handler),
            reserved_at=self._clock.now_ns(),
            boot_id=self._boot_id,
            image_id=image.id,
            image_name=image.repo_tags[0] if image.repo_tags else image.reference,
            image_ref=image.reference,
            log_path=log_path,
            stop_signal=stop_signal_number(config.stop_signal, image.config.stop_signal),
            resources=config.resources,
            restored_from=source.path,
        )

    async def _build(self, record: ContainerRecord, pod: PodRecord, source: Source, undo: Undo) -> None:
        undo.push("remove the root file system", partial(self._rootfs.remove, record.id))
        root = await self._rootfs.prepare(_rootfs_request(record, source, pod.users))
        undo.push("release image volumes", partial(self._specs.release, record.id))
        built = await self._specs.container(record, pod, source.image, root)
        if source.path:
            undo.push("discard the checkpoint's state", partial(self._restores.discard, record.id))
            await source.keep(record.id, built.spec)
            processes = Processes()
        else:
            processes = await self._make(record, pod, built, undo)
        record = await self._amend(
            record.id,
            created_at=self._clock.now_ns(),
            processes=processes,
            identity=built.identity,
            mounts=built.mounts,
            cgroup_path=built.cgroup_path,
        )
        if not record.to_restore:
            self._exits.watch(record)
        # Only now: a stop that began before finds the container created, one that begins later is seen here.
        if self._registry.pods.require(pod.id).state is not PodState.READY:
            raise FailedPrecondition(f"pod_sandbox_id: pod {pod.id} was stopped meanwhile")

    async def _make(self, record: ContainerRecord, pod: PodRecord, built: Built, undo: Undo) -> Processes:
        launch = Launch(
            id=record.id,
            handler=record.runtime_handler,
            spec=built.spec,
            log_path=record.log_path,
            terminal=record.config.tty,
            stdin=record.config.stdin,
            stdin_once=record.config.stdin_once,
            stdio_uid=pod.users.ids.host_uid(built.identity.uid) if pod.users else None,
        )
        undo.push("remove it from the runtime", partial(self._runtime.delete, record.id, record.runtime_handler))
        return await self._runtime.create(launch)

    async def start(self, container_id: str) -> None:
        """CRI StartContainer. A program that cannot be started leaves the container EXITED with StartError. A start
        that was begun goes on without its caller: cut off, it would leave a container that runs and is not known to."""
        record = self._registry.containers.require(container_id)
        await self._starts.run(record.id, partial(self._start, record.id))

    async def _start(self, container_id: ContainerId) -> None:
        async with self._locks.of(container_id):
            record = self._registry.containers.require(container_id)
            if not can_start(record.state):
                raise FailedPrecondition(f"container {record.id} is {record.state.value}, not created")
            if self._registry.pods.require(record.pod_id).state is not PodState.READY:
                raise FailedPrecondition(f"pod {record.pod_id} of container {record.id} is not ready")
            record = await self._amend(record.id, starting_at=self._clock.now_ns())
            await self._launch(record)
        self._events.announce(EventKind.STARTED, record.id, record.pod_id)

    async def _launch(self, record: ContainerRecord) -> None:
        try:
            if record.to_restore:
                await self._restore(record)
            else:
                await self._runtime.start(record.id, record.runtime_handler)
        except EngineError as error:
            await self._end_failed_start(record)
            now = self._clock.now_ns()
            fact = ExitFact(exit_code=START_FAILED_CODE, finished_at=now, reason="StartError", message=str(error))
            await self._exits.record_exit(record.id, fact)
            self._exits.unwatch(record.id)
            raise
        await self._amend(record.id, started_at=self._clock.now_ns())
        if record.restored_from:
            await self._restores.discard(record.id)

    async def _restore(self, record: ContainerRecord) -> None:
        processes = await self._restores.run(record)
        self._exits.watch(await self._amend(record.id, processes=processes))

    async def _end_failed_start(self, record: ContainerRecord) -> None:
        """What is told EXITED must not run: a runtime that gave no answer in time may have started it all the same."""
        try:
            await self._runtime_kill(record, signal.SIGKILL)
        except NotFound:
            log.debug("nothing runs after a failed start", container=record.id)
        except EngineError as error:
            log.warning("container not ended after a failed start", container=record.id, error=str(error))

    async def stop(self, container_id: str, grace_seconds: float) -> None:
        """CRI StopContainer: the stop signal, the grace period, SIGKILL.

        Returns when the end is on record; success when nothing runs or the container is unknown. No lock is held: a
        second, shorter stop takes effect at once. A start that is under way comes first: it goes on without its caller,
        and would make a running container out of one that was told stopped.
        """
        record = self._registry.containers.find(container_id)
        if record is not None and record.id in self._starts:
            async with self._locks.of(record.id):
                record = self._registry.containers.get(record.id)
        if record is None or not can_stop(record.state):
            return
        await self._amend(record.id, stopping_at=self._clock.now_ns())
        if grace_seconds > 0:
            await self._signal(record, record.stop_signal)
            if await self._ended_within(record.id, grace_seconds):
                return
        await self._kill(record)

    async def _kill(self, record: ContainerRecord) -> None:
        await self._signal(record, signal.SIGKILL)
        if not await self._ended_within(record.id, KILL_SECONDS):
            raise DeadlineExceeded(f"container {record.id} still runs {KILL_SECONDS:.0f} s after SIGKILL")

    async def kill(self, container_id: str) -> None:
        """Ends a container at once, also one that was created and never started: its first process waits in the
        pod's namespaces and cgroup, which are about to go. And one whose removal has not come to its end yet."""
        record = self._registry.containers.find(container_id)
        if record is not None and record.to_restore:
            record = await self._end_unrestored(record.id)
        if record is None:
            return
        if can_stop(record.state) or record.state is ContainerState.CREATED:
            await self._kill(record)
        elif record.state is ContainerState.REMOVING and record.created_at and record.exit is None:
            await self._kill_removed(record)

    async def _kill_removed(self, record: ContainerRecord) -> None:
        """Nobody watches it any more, and its end goes on no record."""
        await self._signal(record, signal.SIGKILL)
        try:
            async with asyncio.timeout(KILL_SECONDS):
                remembered = self._remembered(record)
                await self._runtime.wait_exit(record.id, remembered.processes, cgroup_path=remembered.cgroup_path)
        except TimeoutError as error:
            raise DeadlineExceeded(f"container {record.id} still runs {KILL_SECONDS:.0f} s after SIGKILL") from error

    async def _end_unrestored(self, container_id: ContainerId) -> ContainerRecord | None:
        """One that waits to be restored has nothing that could be killed. A restore under way comes first."""
        async with self._locks.of(container_id):
            record = self._registry.containers.get(container_id)
            if record is None or not record.to_restore or record.state is not ContainerState.CREATED:
                return record
            fact = ExitFact(exit_code=128 + signal.SIGKILL, finished_at=self._clock.now_ns())
            return await self._exits.record_exit(container_id, fact)

    async def _signal(self, record: ContainerRecord, number: int) -> None:
        if record.state is ContainerState.PAUSED:
            with contextlib.suppress(FailedPrecondition):  # it was resumed by the signal before
                await self._runtime.resume(record.id, record.runtime_handler)
        try:
            await self._runtime_kill(record, number)
        except NotFound:
            log.warning("runtime does not know a running container", container=record.id)

    async def _runtime_kill(self, record: ContainerRecord, number: int) -> None:
        await self._runtime.kill(record.id, record.runtime_handler, number, remembered=self._remembered(record))

    def _remembered(self, record: ContainerRecord) -> Remembered:
        if record.boot_id != self._boot_id:
            return Remembered()
        return Remembered(processes=record.processes, cgroup_path=record.cgroup_path)

    async def _ended_within(self, container_id: ContainerId, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exits.wait(container_id)
        except TimeoutError:
            return False
        return True

    async def remove(self, container_id: str) -> None:
        """CRI RemoveContainer: ends it if it runs. Idempotent. A removal that was begun goes on without its caller."""
        record = self._registry.containers.find(container_id)
        if record is None or record.id in self.creating:
            return
        await self._removals.run(record.id, partial(self._remove, record.id))

    async def _remove(self, container_id: ContainerId) -> None:
        await self.stop(container_id, 0)
        async with self._locks.of(container_id):
            record = await self._amend(container_id, removing_at=self._clock.now_ns())
            await self._release(record)
        self._events.announce(EventKind.DELETED, container_id, record.pod_id)

    async def discard(self, record: ContainerRecord) -> None:
        """Undoes a container that a former daemon left half-made or half-removed."""
        async with self._locks.of(record.id):
            await self._release(record)

    async def _release(self, record: ContainerRecord) -> None:
        self._exits.unwatch(record.id)
        await self._runtime.delete(record.id, record.runtime_handler, remembered=self._remembered(record))
        await self._rootfs.remove(record.id)
        await self._specs.release(record.id)
        if record.restored_from:
            await self._restores.discard(record.id)
        await self._registry.containers.forget(record.id)

    async def update(self, container_id: str, wanted: Resources) -> None:
        """CRI UpdateContainerResources (engine.updates)."""
        await self._updates.run(container_id, wanted)

    async def reopen_log(self, container_id: str) -> None:
        """CRI ReopenContainerLog: after the kubelet has renamed the file."""
        record = self._registry.containers.require(container_id)
        if record.state not in {ContainerState.RUNNING, ContainerState.PAUSED}:
            raise FailedPrecondition(f"container {record.id} is {record.state.value}, not running")
        if not record.log_path:
            raise InvalidInput(f"container {record.id} has no log")
        await self._runtime.reopen_log(record.id)

    async def _abandon(self, container_id: ContainerId, undo: Undo) -> None:
        """The last step of undoing a creation: without a trace, or, where a step failed, left for the sweeper."""
        self._exits.unwatch(container_id)
        if undo.failures:
            await self._amend(container_id, removing_at=self._clock.now_ns())
        else:
            await self._registry.containers.forget(container_id)

    async def _amend(self, container_id: ContainerId, **facts: object) -> ContainerRecord:
        return await self._registry.containers.amend(container_id, lambda old: msgspec.structs.replace(old, **facts))


def _rootfs_request(record: ContainerRecord, source: Source, users: PodUsers | None) -> RootfsRequest:
    external = record.config.external_rootfs
    return RootfsRequest(
        container_id=record.id,
        layers=() if external else tuple(layer.chain_id for layer in source.image.layers),
        quota_bytes=record.config.storage_bytes,
        external=external,
        users=users,
        fill=source.fill,
    )


def check_namespaces(pod: NamespaceOptions, asked: NamespaceOptions) -> None:
    """A container has its pod's network, IPC and users: the mode that says so, or the pod's own; and the host's
    processes only in a pod that has them. Anything else is InvalidInput, naming the field."""
    field = "config.linux.security_context.namespace_options"
    for kind in ("network", "ipc"):
        mode, pods = getattr(asked, kind), getattr(pod, kind)
        if mode not in {NamespaceMode.POD, pods}:
            raise InvalidInput(f"{field}.{kind}: {mode.name} in a pod with {pods.name}")
    # None is that of the pod (CRI, NamespaceOption.userns_options), NODE is the host's.
    if asked.userns is not None and asked.own_users != pod.own_users:
        raise InvalidInput(f"{field}.userns_options: not those of the pod")
    if asked.pid is NamespaceMode.NODE and pod.pid is not NamespaceMode.NODE:
        raise InvalidInput(f"{field}.pid: NODE in a pod with {pod.pid.name}")
