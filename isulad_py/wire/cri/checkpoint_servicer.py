"""The part of RuntimeService that is about checkpoints: decode, one service call, encode."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.cri.services import Services
from isulad_py.wire.translate import calls, checks, containers, pods


class CheckpointServicer:
    def __init__(self, *, services: Services) -> None:
        self._checkpoints = services.checkpoints

    async def checkpoint_container(self, request: cri.CheckpointContainerRequest) -> cri.CheckpointContainerResponse:
        container_id = calls.container_id(request.container_id)
        checks.absolute(request.location, "location")
        checks.at_least(0, request.timeout, "timeout")
        await self._checkpoints.container(container_id)
        return cri.CheckpointContainerResponse()

    async def checkpoint_pod(self, request: cri.CheckpointPodRequest) -> cri.CheckpointPodResponse:
        pod_id = calls.pod_id(request.pod_sandbox_id)
        checks.absolute(request.output_path, "output_path")
        members = [
            checks.required_name(each, f"container_ids[{index}]") for index, each in enumerate(request.container_ids)
        ]
        await self._checkpoints.pod(pod_id, members)
        return cri.CheckpointPodResponse()

    async def restore_pod(self, request: cri.RestorePodRequest) -> cri.RestorePodResponse:
        checks.absolute(request.checkpoint_path, "checkpoint_path")
        pods.pod_config_if_given(request.config, "config")
        for index, config in enumerate(request.container_configs):
            containers.container_config(config, f"container_configs[{index}]")
        await self._checkpoints.restore(checks.name(request.runtime_handler, "runtime_handler"))
        return cri.RestorePodResponse()
