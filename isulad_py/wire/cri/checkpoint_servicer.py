"""The part of RuntimeService that is about checkpoints: decode, one service call, encode."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.cri.services import Services
from isulad_py.wire.translate import calls, checks, containers, pods


class CheckpointServicer:
    def __init__(self, *, services: Services) -> None:
        self._checkpoints = services.checkpoints
        self._pods = services.pod_checkpoints

    async def checkpoint_container(self, request: cri.CheckpointContainerRequest) -> cri.CheckpointContainerResponse:
        container_id = calls.container_id(request.container_id)
        location = checks.straight(request.location, "location")
        timeout = checks.at_least(0, request.timeout, "timeout")
        await self._checkpoints.container(container_id, location, timeout)
        return cri.CheckpointContainerResponse()

    async def checkpoint_pod(self, request: cri.CheckpointPodRequest) -> cri.CheckpointPodResponse:
        pod_id = calls.pod_id(request.pod_sandbox_id)
        directory = checks.straight(request.output_path, "output_path")
        checks.at_most(checks.LIST_MAX, request.container_ids, "container_ids")
        members = [
            checks.required_name(each, f"container_ids[{index}]") for index, each in enumerate(request.container_ids)
        ]
        await self._pods.checkpoint(pod_id, directory, members, request.options)
        return cri.CheckpointPodResponse()

    async def restore_pod(self, request: cri.RestorePodRequest) -> cri.RestorePodResponse:
        directory = checks.straight(request.checkpoint_path, "checkpoint_path")
        config = pods.pod_config_if_given(request.config, "config")
        configs = [
            containers.container_config(each, f"container_configs[{index}]")
            for index, each in enumerate(request.container_configs)
        ]
        handler = checks.name(request.runtime_handler, "runtime_handler")
        restored = await self._pods.restore(directory, config, handler, configs, request.options)
        return cri.RestorePodResponse(
            pod_sandbox_id=restored.id,
            restored_containers=[
                cri.RestoredContainer(name=name, container_id=container_id)
                for name, container_id in restored.containers
            ],
        )
