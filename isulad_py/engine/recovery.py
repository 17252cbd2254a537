"""At start: the records against the world. Nothing is deleted because it could not be read."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec
import structlog

from isulad_py.engine.containers import Containers
from isulad_py.engine.exits import Exits
from isulad_py.engine.images import Images
from isulad_py.engine.pods import Pods
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerRecord, ContainerState, ExitFact
from isulad_py.model.errors import EngineError
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.ports.clock import Clock
from isulad_py.ports.network import Network
from isulad_py.ports.runtime import ContainerRuntime
from isulad_py.ports.sandbox import PodEnvironments
from isulad_py.ports.storage import Layers, RootFilesystems

log = structlog.get_logger(__name__)

UNKNOWN_CODE = 255


class Recovery:
    """Reads what is on record and takes up again what a former daemon left: running containers are watched, half-made
    ones are for the sweeper, what ended meanwhile gets its true end."""

    def __init__(
        self,
        *,
        registry: Registry,
        images: Images,
        containers: Containers,
        pods: Pods,
        exits: Exits,
        runtime: ContainerRuntime,
        environments: PodEnvironments,
        clock: Clock,
        boot_id: str,
    ) -> None:
        self._registry = registry
        self._images = images
        self._containers = containers
        self._pods = pods
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
            record = await self._settle_start(record)
        self._exits.watch(record)

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
        default_handler: str,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._environments = environments
        self._rootfs = rootfs
        self._layers = layers
        self._network = network
        self._images = images
        self._default_handler = default_handler

    async def clear(self) -> None:
        """Run once at start, before any call is served: later, what is on no record may just be coming."""
        aside = await self._registry.quarantined()
        if aside:
            # A record that cannot be read may name images, networks and ids that nothing else tells: leave all be.
            log.error("records are put aside: nothing is swept until they are seen to", ids=sorted(aside))
            return
        known = {*self._registry.containers, *self._registry.pods}
        for container_id in await self._runtime.present() - known:
            await self._try("container", container_id, self._runtime.delete(container_id, self._default_handler))
        for container_id in await self._rootfs.present() - known:
            await self._try("root file system", container_id, self._rootfs.remove(container_id))
        for key in await self._layers.views():
            if key.rpartition("-")[0] not in known:  # it would keep the layers that it shows
                await self._try("image volume", key, self._layers.release(key))
        for pod_id in await self._environments.present() - known:
            await self._try("pod environment", pod_id, self._environments.destroy(pod_id))
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
