"""Finishes what calls left unfinished: removals, half-made objects, pods that were being stopped, unused layers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

import structlog

from isulad_py.engine.containers import Containers
from isulad_py.engine.images import Images
from isulad_py.engine.pods import Pods
from isulad_py.engine.registry import Registry
from isulad_py.model.container import ContainerState
from isulad_py.model.errors import EngineError
from isulad_py.model.pod import PodState
from isulad_py.ports.clock import Clock

log = structlog.get_logger(__name__)

PERIOD_SECONDS: Final = 60.0


class Sweeper:
    def __init__(self, *, registry: Registry, containers: Containers, pods: Pods, images: Images, clock: Clock) -> None:
        self._registry = registry
        self._containers = containers
        self._pods = pods
        self._images = images
        self._clock = clock
        self._swept = asyncio.Event()

    async def run(self) -> None:
        """For ever; what fails is tried again in the next round."""
        while True:
            await self.sweep()
            self._swept.set()
            await self._clock.sleep(PERIOD_SECONDS)

    async def first_round(self, patience_seconds: float) -> None:
        """Returns after the first round of `run`, or at the end of patience: what hangs (a plugin) is swept later."""
        try:
            async with asyncio.timeout(patience_seconds):
                await self._swept.wait()
        except TimeoutError:
            log.warning("the first sweep takes long: it goes on in the background")

    async def sweep(self) -> None:
        """One round. Each object is looked at anew when its turn comes: those before it may have taken long, and what
        was being made when the round began may run by now."""
        for container_id in list(self._registry.containers):
            await self._try("container", container_id, self._sweep_container(container_id))
        for pod_id in list(self._registry.pods):
            await self._try("pod", pod_id, self._sweep_pod(pod_id))
        await self._try("layers", "gc", self._images.collect_owed())

    async def _sweep_container(self, container_id: str) -> None:
        container = self._registry.containers.get(container_id)
        if container is None or container.id in self._containers.creating:
            return
        if container.state is ContainerState.REMOVING:
            await self._containers.remove(container.id)
        elif container.state is ContainerState.CREATING:
            await self._containers.discard(container)

    async def _sweep_pod(self, pod_id: str) -> None:
        pod = self._registry.pods.get(pod_id)
        if pod is None or pod.id in self._pods.creating:
            return
        # Not ready, and never was: a run that failed and could not be undone. The kubelet never learnt its id.
        failed = pod.state is PodState.NOTREADY and not pod.stopped_at and not pod.ready_at
        if pod.state is PodState.REMOVING or failed:
            await self._pods.remove(pod.id)
        elif pod.state is PodState.CREATING:
            await self._pods.discard(pod)

    async def _try(self, what: str, key: str, work: Awaitable[None]) -> None:
        try:
            await work
        except EngineError as error:
            log.warning("not swept, trying again later", what=what, id=key, error=str(error))
        except Exception:  # a bug met with one object must not end the daemon, and again at each of its starts
            log.exception("not swept, trying again later", what=what, id=key)
