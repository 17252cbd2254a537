"""The part of RuntimeService that acts: decode, one service call, encode. What no servicer has answers UNIMPLEMENTED
with its name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from isulad_py import __version__
from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.events import LifecycleEvent
from isulad_py.wire.cri.services import Lists, Services
from isulad_py.wire.encodings import Chunks
from isulad_py.wire.translate import (
    calls,
    checks,
    containers,
    events,
    filters,
    pods,
    presence,
    resources,
    status,
)

KUBE_API_VERSION: Final = "0.1.0"
"""What every engine says in Version.version; kubelets compare it with nothing else."""
RUNTIME_NAME: Final = "isulad-py"


class RuntimeServicer:
    def __init__(self, *, services: Services, lists: Lists, api_version: str) -> None:
        """`api_version` is v1 or v1alpha2; nothing else differs between them."""
        self._to = services
        self._lists = lists
        self._api_version = api_version

    async def version(self, _request: cri.VersionRequest) -> cri.VersionResponse:
        return cri.VersionResponse(
            version=KUBE_API_VERSION,
            runtime_name=RUNTIME_NAME,
            runtime_version=__version__,
            runtime_api_version=self._api_version,
        )

    async def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        info = await self._to.readiness.info() if request.verbose else {}
        return status.status_message(await self._to.readiness.status(), info)

    async def runtime_config(self, _request: cri.RuntimeConfigRequest) -> cri.RuntimeConfigResponse:
        driver = cri.CgroupDriver.SYSTEMD if self._to.systemd_cgroup else cri.CgroupDriver.CGROUPFS
        linux = cri.LinuxRuntimeConfiguration(cgroup_driver=cri.CgroupDriver(driver))
        return cri.RuntimeConfigResponse(linux=linux)

    async def update_runtime_config(self, request: cri.UpdateRuntimeConfigRequest) -> cri.UpdateRuntimeConfigResponse:
        cidr = request.runtime_config.network_config.pod_cidr
        if cidr:
            await self._to.network.set_pod_cidr(checks.cidrs(cidr, "runtime_config.network_config.pod_cidr"))
        return cri.UpdateRuntimeConfigResponse()

    async def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        config = pods.pod_config(request.config)
        handler = checks.name(request.runtime_handler, "runtime_handler")
        return cri.RunPodSandboxResponse(pod_sandbox_id=await self._to.pods.run(config, handler))

    async def stop_pod_sandbox(self, request: cri.StopPodSandboxRequest) -> cri.StopPodSandboxResponse:
        await self._to.pods.stop(calls.pod_id(request.pod_sandbox_id))
        return cri.StopPodSandboxResponse()

    async def remove_pod_sandbox(self, request: cri.RemovePodSandboxRequest) -> cri.RemovePodSandboxResponse:
        await self._to.pods.remove(calls.pod_id(request.pod_sandbox_id))
        return cri.RemovePodSandboxResponse()

    async def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        record = self._to.queries.pod(calls.pod_id(request.pod_sandbox_id))
        return cri.PodSandboxStatusResponse(
            status=pods.pod_status(record),
            info=await self._to.queries.pod_info(record.id) if request.verbose else {},
            containers_statuses=containers.container_statuses(self._to.queries.containers_of(record.id)),
            timestamp=self._to.clock.now_ns(),
        )

    async def update_pod_sandbox_resources(
        self, request: cri.UpdatePodSandboxResourcesRequest
    ) -> cri.UpdatePodSandboxResourcesResponse:
        overhead = resources.resources_if_given(request.overhead, "overhead")
        limits = resources.resources_if_given(request.resources, "resources")
        await self._to.pods.update_resources(calls.pod_id(request.pod_sandbox_id), overhead=overhead, resources=limits)
        return cri.UpdatePodSandboxResourcesResponse()

    async def list_pod_sandbox(self, request: cri.ListPodSandboxRequest) -> bytes:
        wanted = filters.pod_filter(request.filter)
        return await self._lists.pods.join(self._to.queries.pods(wanted), complete=wanted == PodFilter())

    def stream_pod_sandboxes(self, request: cri.StreamPodSandboxesRequest) -> Chunks:
        wanted = filters.pod_filter(request.filter)
        return nullcontext(self._lists.pods.chunks(self._to.queries.pods(wanted), complete=wanted == PodFilter()))

    async def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        pod_id = calls.pod_id(request.pod_sandbox_id)
        config = containers.container_config(request.config)
        sandbox = pods.pod_config_if_given(request.sandbox_config, "sandbox_config")
        return cri.CreateContainerResponse(container_id=await self._to.containers.create(pod_id, config, sandbox))

    async def start_container(self, request: cri.StartContainerRequest) -> cri.StartContainerResponse:
        await self._to.containers.start(calls.container_id(request.container_id))
        return cri.StartContainerResponse()

    async def stop_container(self, request: cri.StopContainerRequest) -> cri.StopContainerResponse:
        grace_seconds = checks.at_least(0, request.timeout, "timeout")
        await self._to.containers.stop(calls.container_id(request.container_id), grace_seconds)
        return cri.StopContainerResponse()

    async def remove_container(self, request: cri.RemoveContainerRequest) -> cri.RemoveContainerResponse:
        await self._to.containers.remove(calls.container_id(request.container_id))
        return cri.RemoveContainerResponse()

    async def list_containers(self, request: cri.ListContainersRequest) -> bytes:
        wanted = filters.container_filter(request.filter)
        found = self._to.queries.containers(wanted)
        return await self._lists.containers.join(found, complete=wanted == ContainerFilter())

    def stream_containers(self, request: cri.StreamContainersRequest) -> Chunks:
        wanted = filters.container_filter(request.filter)
        found = self._to.queries.containers(wanted)
        return nullcontext(self._lists.containers.chunks(found, complete=wanted == ContainerFilter()))

    async def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        record = self._to.queries.container(calls.container_id(request.container_id))
        info = await self._to.queries.container_info(record.id) if request.verbose else {}
        return cri.ContainerStatusResponse(status=containers.container_status(record), info=info)

    async def update_container_resources(
        self, request: cri.UpdateContainerResourcesRequest
    ) -> cri.UpdateContainerResourcesResponse:
        container_id = calls.container_id(request.container_id)
        limits = resources.resources(presence.required(request.linux, "linux"), "linux")
        checks.unsupported(request.annotations, "annotations")
        checks.unsupported(presence.given(request.windows), "windows")
        await self._to.containers.update(container_id, limits)
        return cri.UpdateContainerResourcesResponse()

    async def reopen_container_log(self, request: cri.ReopenContainerLogRequest) -> cri.ReopenContainerLogResponse:
        await self._to.containers.reopen_log(calls.container_id(request.container_id))
        return cri.ReopenContainerLogResponse()

    async def exec_sync(self, request: cri.ExecSyncRequest) -> cri.ExecSyncResponse:
        timeout_seconds = checks.at_least(0, request.timeout, "timeout") or None
        command = calls.command(request.cmd)
        return calls.exec_answer(
            await self._to.exec.exec_sync(calls.container_id(request.container_id), command, timeout_seconds)
        )

    @contextmanager
    def get_container_events(
        self, _request: cri.GetEventsRequest
    ) -> Iterator[AsyncIterator[cri.ContainerEventResponse]]:
        with self._to.events.subscribe() as subscription:
            yield _translated(subscription)


async def _translated(happened: AsyncIterator[LifecycleEvent]) -> AsyncIterator[cri.ContainerEventResponse]:
    async for event in happened:
        yield events.event_message(event)
