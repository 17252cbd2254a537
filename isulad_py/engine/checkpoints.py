"""Checkpoints of containers and pods: refused, with the reason, as long as nothing here can make one."""

from __future__ import annotations

from collections.abc import Sequence

from isulad_py.engine.handlers import Handlers
from isulad_py.engine.registry import Registry
from isulad_py.model.errors import FailedPrecondition, InvalidInput, Unsupported
from isulad_py.model.lifecycle import can_exec
from isulad_py.model.pod import PodState
from isulad_py.ports.runtime import ContainerRuntime


class Checkpoints:
    """Every call first finds out what it can: that there is such a container, that it runs, that CRIU works."""

    def __init__(self, *, registry: Registry, runtime: ContainerRuntime, handlers: Handlers) -> None:
        self._registry = registry
        self._runtime = runtime
        self._handlers = handlers

    async def container(self, container_id: str) -> None:
        """CRI CheckpointContainer. Raises NotFound, FailedPrecondition naming what is in the way, or Unsupported."""
        record = self._registry.containers.require(container_id)
        if not can_exec(record.state):
            raise FailedPrecondition(f"container {record.id} is {record.state.value}, not running")
        await self._refuse("CheckpointContainer", record.runtime_handler)

    async def pod(self, pod_id: str, container_ids: Sequence[str]) -> None:
        """CRI CheckpointPod, likewise. InvalidInput for a container of another pod."""
        pod = self._registry.pods.require(pod_id)
        if pod.state is not PodState.READY:
            raise FailedPrecondition(f"pod {pod.id} is not ready")
        for index, container_id in enumerate(container_ids):
            if self._registry.containers.require(container_id).pod_id != pod.id:
                raise InvalidInput(f"container_ids[{index}]: {container_id} is not in pod {pod.id}")
        await self._refuse("CheckpointPod", self._handlers.resolve(pod.runtime_handler))

    async def restore(self, runtime_handler: str) -> None:
        """CRI RestorePod, likewise."""
        await self._refuse("RestorePod", self._handlers.resolve(runtime_handler))

    async def _refuse(self, call: str, handler: str) -> None:
        obstacle = await self._runtime.checkpoint_obstacle(handler)
        if obstacle:
            raise FailedPrecondition(f"{call}: {obstacle}")
        raise Unsupported(f"{call} is not implemented")
