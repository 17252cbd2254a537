"""Pod sandboxes: run, stop, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from functools import partial

import msgspec
import structlog

from isulad_py.engine.containers import Containers
from isulad_py.engine.events import Events
from isulad_py.engine.exits import Exits
from isulad_py.engine.features import Features
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.locks import SingleFlight
from isulad_py.engine.pause import PauseContainers
from isulad_py.engine.pod_cgroups import PodCgroups
from isulad_py.engine.registry import Registry, pod_name
from isulad_py.engine.undo import Undo
from isulad_py.model.errors import NotFound
from isulad_py.model.events import EventKind
from isulad_py.model.ids import PodId, new_id
from isulad_py.model.network import Attachment
from isulad_py.model.pod import PodConfig, PodRecord, PodState
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode
from isulad_py.ports.clock import Clock
from isulad_py.ports.network import Network
from isulad_py.ports.sandbox import EnvironmentRequest, PodEnvironments
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)


class Pods:
    def __init__(
        self,
        *,
        registry: Registry,
        containers: Containers,
        environments: PodEnvironments,
        network: Network,
        pause: PauseContainers,
        cgroups: PodCgroups,
        exits: Exits,
        events: Events,
        handlers: Handlers,
        features: Features,
        tasks: Tasks,
        clock: Clock,
        boot_id: str,
    ) -> None:
        self._registry = registry
        self._containers = containers
        self._environments = environments
        self._network = network
        self._pause = pause
        self._cgroups = cgroups
        self._exits = exits
        self._events = events
        self._handlers = handlers
        self._features = features
        self._tasks = tasks
        self._clock = clock
        self._boot_id = boot_id
        self._stops: SingleFlight[None] = SingleFlight(tasks=tasks, name="stop pod")
        self._removals: SingleFlight[None] = SingleFlight(tasks=tasks, name="remove pod")
        self.creating: set[PodId] = set()
        """Being run right now: not for the sweeper."""
        self._told_stopped: set[PodId] = set()

    async def run(self, config: PodConfig, runtime_handler: str) -> PodId:
        """A ready pod (CRI RunPodSandbox). One that fails or is cancelled leaves nothing behind; what could not be
        undone stays on record, not ready, for the sweeper and for StopPodSandbox."""
        self._handlers.resolve(runtime_handler)
        await self._features.check_users(config.security.namespaces, runtime_handler)
        await self._pause.check(config)
        pod_id = PodId(new_id())
        record = PodRecord(
            id=pod_id,
            config=config,
            runtime_handler=runtime_handler,
            created_at=self._clock.now_ns(),
            boot_id=self._boot_id,
            cgroup_path=self._cgroups.path_for(pod_id, config),
            resources=config.resources,
            overhead=config.overhead,
        )
        self.creating.add(pod_id)
        try:
            async with Undo(tasks=self._tasks) as undo:
                undo.push("forget the pod", partial(self._abandon, pod_id, undo))
                await self._registry.pods.add(record, name=pod_name(record))
                await self._build(record, undo)
        finally:
            self.creating.discard(pod_id)
        self._events.announce(EventKind.CREATED, pod_id, pod_id)
        self._events.announce(EventKind.STARTED, pod_id, pod_id)
        return pod_id

    async def _build(self, record: PodRecord, undo: Undo) -> None:
        pod_id = record.id
        undo.push("remove the cgroup", partial(self._cgroups.remove, record))
        undo.push("release namespaces and files", partial(self._environments.destroy, pod_id))
        request = _environment_of(record)
        environment = await self._environments.create(request)
        record = await self._amend(pod_id, environment=environment)
        if not record.config.host_network:
            undo.push("release the network", partial(self._release_network, pod_id))
            record = await self._attach(record)
            await self._environments.settle(request, record.network.ips if record.network else ())
        if self._pause.needed(record):
            undo.push("remove the pause container", partial(self._pause.remove, record))
            processes = await self._pause.start(record)
            environment = msgspec.structs.replace(record.environment, pidns_path=f"/proc/{processes.pid}/ns/pid")
            record = await self._amend(pod_id, pause=processes, environment=environment)
        record = await self._amend(pod_id, ready_at=self._clock.now_ns())
        self.watch(record)

    async def _attach(self, record: PodRecord) -> PodRecord:
        config = record.config
        attachment = self._network.prepare(
            Attachment(
                pod_id=record.id,
                name=config.metadata.name,
                namespace=config.metadata.namespace,
                uid=config.metadata.uid,
                netns_path=record.environment.netns_path,
                cgroup_path=record.cgroup_path,
                port_mappings=config.port_mappings,
                dns=config.dns,
                annotations=config.annotations,
            )
        )
        await self._amend(record.id, attachment=attachment)
        # Beside the plugins, which take longer: what they write may outlive a cut of the power that takes this away.
        flushing = self._tasks.start(self._registry.pods.flush(), name="flush records")
        result = await self._network.attach(attachment)
        await flushing
        return await self._amend(record.id, network=result)

    def watch(self, record: PodRecord) -> None:
        """Follows the pause container of a ready pod, where it has one."""
        if record.pause is not None:
            self._exits.watch_pause(record.id, record.pause, self._on_pause_end)

    async def _on_pause_end(self, pod_id: PodId) -> None:
        try:
            await self.mark_not_ready(pod_id)
        except NotFound:
            return
        self._tell_stopped(pod_id)

    def _tell_stopped(self, pod_id: PodId) -> None:
        """Once, whether the pod ended by itself or was stopped, at the first attempt or a later one."""
        if pod_id not in self._told_stopped:
            self._told_stopped.add(pod_id)
            self._events.announce(EventKind.STOPPED, pod_id, pod_id)

    async def mark_not_ready(self, pod_id: PodId) -> PodRecord:
        return await self._registry.pods.amend(pod_id, self._stopping)

    def _stopping(self, old: PodRecord) -> PodRecord:
        return old if old.stopping_at else msgspec.structs.replace(old, stopping_at=self._clock.now_ns())

    async def stop(self, pod_id: str) -> None:
        """Ends all that runs in the pod and gives its network back. Idempotent, also for a pod that is unknown (CRI
        StopPodSandbox: "must not return an error if all relevant resources have already been reclaimed")."""
        record = self._registry.pods.find(pod_id)
        if record is None or record.stopped_at or record.id in self.creating:
            return
        await self._stops.run(record.id, partial(self._stop, record.id))

    async def _stop(self, pod_id: PodId) -> None:
        record = await self.mark_not_ready(pod_id)
        await _all(self._containers.kill(container.id) for container in self._registry.containers_of(pod_id))
        await self._release_network(pod_id)
        if record.pause is not None or self._pause.needed(record):
            self._exits.unwatch(pod_id)
            await self._pause.remove(record)
        await self._environments.destroy(pod_id)
        await self._amend(pod_id, stopped_at=self._clock.now_ns())
        self._tell_stopped(pod_id)

    async def _release_network(self, pod_id: PodId) -> None:
        """DEL with what ADD was given; the debt is struck from the record only when it is paid."""
        record = self._registry.pods.get(pod_id)
        if record is None or record.attachment is None:
            return
        await self._network.detach(record.attachment, record.network)
        await self._amend(pod_id, attachment=None)

    async def remove(self, pod_id: str) -> None:
        """Removes the pod with its containers, stopping what runs. Idempotent (CRI RemovePodSandbox)."""
        record = self._registry.pods.find(pod_id)
        if record is None or record.id in self.creating:
            return
        await self._removals.run(record.id, partial(self._remove, record.id))

    async def _remove(self, pod_id: PodId) -> None:
        await self.stop(pod_id)
        record = await self._amend(pod_id, removing_at=self._clock.now_ns())
        await _all(self._containers.remove(container.id) for container in self._registry.containers_of(pod_id))
        await self._environments.destroy(pod_id)
        await self._cgroups.remove(record)
        await self._registry.pods.forget(pod_id)
        self._told_stopped.discard(pod_id)
        self._events.announce(EventKind.DELETED, pod_id, pod_id, last=record)

    async def update_resources(self, pod_id: str, *, overhead: Resources | None, resources: Resources | None) -> None:
        """CRI UpdatePodSandboxResources: what the kubelet has already set in the pod's cgroup, which is its own. Kept
        and told, nothing more; None stays as it is."""
        record = self._registry.pods.require(pod_id)
        if record.state is PodState.CREATING:
            raise NotFound(f"pod {pod_id} does not exist")
        given = {"overhead": overhead, "resources": resources}
        await self._amend(record.id, **{name: value for name, value in given.items() if value is not None})

    async def discard(self, record: PodRecord) -> None:
        """Undoes a pod that a former daemon left half-made."""
        self._exits.unwatch(record.id)
        await self._pause.remove(record)
        await self._release_network(record.id)
        await self._environments.destroy(record.id)
        await self._cgroups.remove(record)
        await self._registry.pods.forget(record.id)

    async def _abandon(self, pod_id: PodId, undo: Undo) -> None:
        """The last step of undoing a run: without a trace, or, where a step failed, not ready on record."""
        self._exits.unwatch(pod_id)
        if undo.failures:
            await self.mark_not_ready(pod_id)
        else:
            await self._registry.pods.forget(pod_id)

    async def _amend(self, pod_id: PodId, **facts: object) -> PodRecord:
        return await self._registry.pods.amend(pod_id, lambda old: msgspec.structs.replace(old, **facts))


def _environment_of(record: PodRecord) -> EnvironmentRequest:
    config = record.config
    namespaces = config.security.namespaces
    return EnvironmentRequest(
        pod_id=record.id,
        hostname="" if config.host_network else config.hostname,
        network=not config.host_network,
        ipc=namespaces.ipc is not NamespaceMode.NODE,
        users=namespaces.own_users,
        sysctls=config.sysctls,
        dns=config.dns,
    )


async def _all(works: Iterable[Awaitable[None]]) -> None:
    """Every one is tried; the first error is raised after the last has ended."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if outcome is not None:
            raise outcome
