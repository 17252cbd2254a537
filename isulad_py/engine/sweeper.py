"""Finishes what calls left unfinished: removals, half-made objects, pods that were being stopped."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import structlog

from isulad_py.engine.containers import Containers
from isulad_py.engine.pods import Pods
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerState
from isulad_py.model.errors import EngineError
from isulad_py.model.pod import PodState
from isulad_py.ports.clock import Clock

log = structlog.get_logger(__name__)

PERIOD_SECONDS: Final = 60.0


class Sweeper:
    def __init__(self, *, registry: Registry, containers: Containers, pods: Pods, clock: Clock) -> None:
        self._registry = registry
        self._containers = containers
        self._pods = pods
        self._clock = clock

    async def run(self) -> None:
        """For ever; what fails is tried again in the next round."""
        while True:
            await self._clock.sleep(PERIOD_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        """One round."""
        for container in list(self._registry.containers.values()):
            if container.state is ContainerState.REMOVING:
                await self._try("container", container.id, self._containers.remove(container.id))
            elif container.state is ContainerState.CREATING and container.id not in self._containers.creating:
                await self._try("container", container.id, self._containers.discard(container))
        for pod in list(self._registry.pods.values()):
            if pod.state is PodState.REMOVING:
                await self._try("pod", pod.id, self._pods.remove(pod.id))
            elif pod.state is PodState.CREATING and pod.id not in self._pods.creating:
                await self._try("pod", pod.id, self._pods.discard(pod))
            elif pod.state is PodState.NOTREADY and not pod.stopped_at and not pod.ready_at:
                # A run that failed and could not be undone: the kubelet never learnt its id.
                await self._try("pod", pod.id, self._pods.remove(pod.id))

    async def _try(self, what: str, key: str, work: Awaitable[None]) -> None:
        try:
            await work
        except EngineError as error:
            log.warning("not swept, trying again later", what=what, id=key, error=str(error))
