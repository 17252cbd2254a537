"""The read side: lists, statuses, verbose information. Never awaits between reading and answering."""

from __future__ import annotations

import msgspec

from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerRecord, ContainerState
from isulad_py.model.errors import NotFound
from isulad_py.model.pod import PodRecord, PodState
from isulad_py.ports.runtime import ContainerRuntime


class PodFilter(msgspec.Struct, frozen=True, kw_only=True):
    id: str = ""
    state: PodState | None = None
    labels: dict[str, str] = {}


class ContainerFilter(msgspec.Struct, frozen=True, kw_only=True):
    id: str = ""
    state: ContainerState | None = None
    pod_id: str = ""
    labels: dict[str, str] = {}


class Queries:
    def __init__(self, *, registry: Registry, runtime: ContainerRuntime) -> None:
        self._registry = registry
        self._runtime = runtime

    def pods(self, wanted: PodFilter) -> list[PodRecord]:
        """What is being made is not shown; what is being removed is not ready."""
        return [record for record in self._registry.pods.values() if _matches_pod(record, wanted)]

    def containers(self, wanted: ContainerFilter) -> list[ContainerRecord]:
        return [record for record in self._registry.containers.values() if _matches_container(record, wanted)]

    def pod(self, pod_id: str) -> PodRecord:
        record = self._registry.pods.require(pod_id)
        if record.state is PodState.CREATING:
            raise NotFound(f"pod {pod_id} does not exist")
        return record

    def container(self, container_id: str) -> ContainerRecord:
        record = self._registry.containers.require(container_id)
        if record.state is ContainerState.CREATING:
            raise NotFound(f"container {container_id} does not exist")
        return record

    def containers_of(self, pod_id: str) -> list[ContainerRecord]:
        return self.containers(ContainerFilter(pod_id=pod_id))

    async def container_info(self, container_id: str) -> dict[str, str]:
        """Verbose ContainerStatus, in the form that crictl prints: pid, bundle's spec, and our facts."""
        record = self.container(container_id)
        try:
            spec = await self._runtime.bundle_spec(record.id)
        except NotFound:
            spec = b"null"
        info = {
            "sandboxID": record.pod_id,
            "pid": record.processes.pid,
            "monitorPid": record.processes.monitor_pid,
            "runtimeType": record.runtime_handler,
            "state": record.state.value,
            "config": msgspec.to_builtins(record.config),
            "runtimeSpec": msgspec.Raw(spec),
        }
        return {"info": msgspec.json.encode(info).decode()}

    async def pod_info(self, pod_id: str) -> dict[str, str]:
        """Verbose PodSandboxStatus: namespaces, network result, pause container where there is one."""
        record = self.pod(pod_id)
        info = {
            "pid": record.pause.pid if record.pause else 0,
            "state": record.state.value,
            "runtimeHandler": record.runtime_handler,
            "cgroupPath": record.cgroup_path,
            "resources": msgspec.to_builtins(record.resources),
            "overhead": msgspec.to_builtins(record.overhead),
            "environment": msgspec.to_builtins(record.environment),
            "cniResult": msgspec.Raw((record.network.raw if record.network else "") or "null"),
            "config": msgspec.to_builtins(record.config),
        }
        return {"info": msgspec.json.encode(info).decode()}


def _has_labels(labels: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


def _matches_pod(record: PodRecord, wanted: PodFilter) -> bool:
    state = record.state
    if state is PodState.CREATING or not record.id.startswith(wanted.id):
        return False
    if wanted.state is not None and (wanted.state is PodState.READY) != (state is PodState.READY):
        return False
    return _has_labels(record.config.labels, wanted.labels)


def _matches_container(record: ContainerRecord, wanted: ContainerFilter) -> bool:
    state = record.state
    if state is ContainerState.CREATING or not record.id.startswith(wanted.id):
        return False
    if not record.pod_id.startswith(wanted.pod_id):
        return False
    if wanted.state is not None and _shown_as(state) is not _shown_as(wanted.state):
        return False
    return _has_labels(record.config.labels, wanted.labels)


def _shown_as(state: ContainerState) -> ContainerState:
    """CRI knows neither paused containers nor those that are being removed."""
    if state is ContainerState.PAUSED:
        return ContainerState.RUNNING
    return ContainerState.EXITED if state is ContainerState.REMOVING else state
