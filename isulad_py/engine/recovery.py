"""At start: the records against the world. Nothing is deleted because it could not be read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec
import structlog

from isulad_py.engine.checkpoints import Checkpoints
from isulad_py.engine.containers import START_FAILED_CODE
from isulad_py.engine.exits import Exits
from isulad_py.engine.images import Images
from isulad_py.engine.pods import Pods
from isulad_py.engine.registry import POD, Registry
from isulad_py.engine.updates import Updates
from isulad_py.model.container import ContainerRecord, ContainerState, ExitFact
from isulad_py.model.errors import EngineError, NotFound
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.ports.checkpoints import CheckpointFiles
from isulad_py.ports.clock import Clock
from isulad_py.ports.network import Network
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.sandbox import PodEnvironments
from isulad_py.ports.storage import Layers, RootFilesystems
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

UNKNOWN_CODE = 255

_Piece = tuple[str, str, Callable[[], Awaitable[None]]]
"""What it is, its key, and how it is cleared."""


class Recovery:
    """Reads what is on record and takes up again what a former daemon left: running containers are watched, half-made
    ones are for the sweeper, what ended meanwhile gets its true end."""

    def __init__(
        self,
        *,
        registry: Registry,
        images: Images,
        updates: Updates,
        pods: Pods,
        checkpoints: Checkpoints,
        exits: Exits,
        runtime: ContainerRuntime,
        environments: PodEnvironments,
        clock: Clock,
        boot_id: str,
    ) -> None:
        self._registry = registry
        self._images = images
        self._updates = updates
        self._pods = pods
        self._checkpoints = checkpoints
        self._exits = exits
        self._runtime = runtime
        self._environments = environments
        self._clock = clock
        self._boot_id = boot_id

    async def run(self) -> None:
        await self._registry.load()
        await self._images.load()
        for container in list(self._registry.containers.values()):
            try:
                await self._take_up_container(container)
            except Exception:  # one that cannot be looked at must not keep the node without an engine
                log.exception("container not taken up: its end is waited for", container=container.id)
                self._exits.watch(container)
        for pod in list(self._registry.pods.values()):
            try:
                await self._take_up_pod(pod)
            except Exception:
                log.exception("pod not taken up: it stays as it is on record", pod=pod.id)
                self._pods.watch(pod)
        log.info("recovered", pods=len(self._registry.pods), containers=len(self._registry.containers))

    async def _take_up_container(self, record: ContainerRecord) -> None:
        if record.checkpoint_to:
            record = await self._checkpoints.repair(record)
        if record.state in {ContainerState.CREATING, ContainerState.REMOVING, ContainerState.EXITED}:
            return
        if record.boot_id != self._boot_id:
            message = "the machine was restarted while the container existed"
            fact = ExitFact(
                exit_code=UNKNOWN_CODE,
                finished_at=self._clock.now_ns(),
                reason="ContainerStatusUnknown",
                message=message,
            )
            await self._exits.record_exit(record.id, fact)
            return
        if record.starting_at and not record.started_at:
            record = await (self._settle_restore(record) if record.to_restore else self._settle_start(record))
        if record.to_restore:
            return
        if record.updating_to is not None:
            await self._updates.finish(record, record.updating_to)
        self._exits.watch(record)
        await self._runtime.end_commands(record.id)

    async def _settle_start(self, record: ContainerRecord) -> ContainerRecord:
        """A start was under way when the former daemon ended: the runtime knows whether it took place."""
        try:
            state = await self._runtime.state(record.id, record.runtime_handler)
        except EngineError as error:
            log.warning("state of a starting container unknown", container=record.id, error=str(error))
            state = "stopped"
        started_at = 0 if state in {"creating", "created"} else record.starting_at
        return await self._registry.containers.amend(
            record.id, lambda old: msgspec.structs.replace(old, started_at=started_at, starting_at=started_at)
        )

    async def _settle_restore(self, record: ContainerRecord) -> ContainerRecord:
        """A restore was under way: what has not come to its end is ended, since nobody would know of it."""
        try:
            processes = await self._checkpoints.restored(record.id)
        except NotFound:
            await self._runtime.delete(record.id, record.runtime_handler)
            message = "the engine ended while the container was restored"
            now = self._clock.now_ns()
            fact = ExitFact(exit_code=START_FAILED_CODE, finished_at=now, reason="StartError", message=message)
            return await self._exits.record_exit(record.id, fact)
        return await self._registry.containers.amend(
            record.id, lambda old: msgspec.structs.replace(old, processes=processes, started_at=old.starting_at)
        )

    async def _take_up_pod(self, record: PodRecord) -> None:
        if record.state is not PodState.READY:
            return
        if record.boot_id == self._boot_id and await self._environments.intact(record.environment):
            self._pods.watch(record)
            return
        log.warning("pod has lost its namespaces", pod=record.id)
        await self._pods.mark_not_ready(record.id)


class Leftovers:
    """What lies on this host for pods and containers that are on no record."""

    def __init__(
        self,
        *,
        registry: Registry,
        runtime: ContainerRuntime,
        environments: PodEnvironments,
        rootfs: RootFilesystems,
        layers: Layers,
        network: Network,
        images: Images,
        checkpoints: CheckpointFiles,
        tasks: Tasks,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._environments = environments
        self._rootfs = rootfs
        self._layers = layers
        self._network = network
        self._images = images
        self._checkpoints = checkpoints
        self._tasks = tasks

    async def clear(self, patience_seconds: float) -> None:
        """Run once at start, before any call is served: later, what is on no record may just be coming. Returns at the
        end of patience; what takes longer goes on, one piece after the other, and touches nothing that comes later."""
        aside = await self._registry.quarantined()
        if aside:
            log.error("records are put aside: what is theirs stays until they are seen to", ids=sorted(aside))
        pieces = await self._find(aside)
        clearing = self._tasks.start(self._clear(pieces, aside), name="leftovers")
        await asyncio.wait([clearing], timeout=patience_seconds)
        if not clearing.done():
            log.warning("clearing of leftovers takes long: it goes on in the background", pieces=len(pieces))

    async def _find(self, aside: Mapping[str, str]) -> list[_Piece]:
        """What bears an id that no record has, also none that is put aside."""
        known = {*self._registry.containers, *self._registry.pods, *aside}
        runtime, rootfs = await self._runtime.present(), await self._rootfs.present()
        views, environments = await self._layers.views(), await self._environments.present()
        # A view would keep the layers that it shows. Its key is its container's id and a number.
        views = frozenset(key for key in views if key.rpartition("-")[0] not in known)
        waiting = {record.id for record in self._registry.containers.values() if record.to_restore and not record.exit}
        kept = await self._checkpoints.present() - waiting - aside.keys()
        return [
            *(("container", key, partial(self._runtime.delete, key, "")) for key in runtime - known),
            *(("root file system", key, partial(self._rootfs.remove, key)) for key in rootfs - known),
            *(("image volume", key, partial(self._layers.release, key)) for key in views),
            *(("checkpoint", key, partial(self._checkpoints.discard, key)) for key in kept),
            *(("pod environment", key, partial(self._environments.destroy, key)) for key in environments - known),
        ]

    async def _clear(self, pieces: Iterable[_Piece], aside: Mapping[str, str]) -> None:
        for what, key, work in pieces:
            await self._try(what, key, work())
        if POD not in aside.values():  # one of those may have addresses that nothing else tells
            live = [pod.attachment for pod in self._registry.pods.values() if pod.attachment is not None]
            await self._try("networks", "gc", self._network.collect(live))
        await self._try("layers", "gc", self._images.collect_layers())

    async def _try(self, what: str, key: str, work: Awaitable[None]) -> None:
        try:
            await work
        except EngineError as error:
            log.warning("leftover not cleared", what=what, id=key, error=str(error))
        except Exception:
            log.exception("leftover not cleared", what=what, id=key)
