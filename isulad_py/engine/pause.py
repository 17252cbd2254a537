"""Pause containers: only where something must hold a PID namespace for the pod, or where configuration asks for one."""

from __future__ import annotations

from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.specs import Specs
from isulad_py.engine.undo import Undo
from isulad_py.model.container import ImageSpec, Processes
from isulad_py.model.ids import ContainerId
from isulad_py.model.pod import PodConfig, PodRecord
from isulad_py.model.security import NamespaceMode
from isulad_py.ports.runtime import NOTHING, ContainerRuntime, Launch, Remembered
from isulad_py.ports.storage import RootFilesystems, RootfsRequest
from isulad_py.ports.tasks import Tasks


class PauseContainers:
    def __init__(
        self,
        *,
        images: Images,
        rootfs: RootFilesystems,
        runtime: ContainerRuntime,
        specs: Specs,
        handlers: Handlers,
        tasks: Tasks,
        always: bool,
        boot_id: str,
    ) -> None:
        self._images = images
        self._rootfs = rootfs
        self._runtime = runtime
        self._specs = specs
        self._handlers = handlers
        self._tasks = tasks
        self._always = always
        self._boot_id = boot_id

    def needed(self, record: PodRecord) -> bool:
        """A PID namespace that belongs to the pod lives as long as its first process (pid_namespaces(7))."""
        own = self._handlers.traits(record.runtime_handler).pause
        return (self._always if own is None else own) or record.config.security.namespaces.pid is NamespaceMode.POD

    async def check(self, config: PodConfig) -> None:
        """Raises what `start` would raise about the pod's own fields."""
        await self._specs.check_pod(config)

    async def start(self, record: PodRecord) -> Processes:
        """The pause container, running, under the pod's own id. Pulls its image where it is missing. Leaves nothing
        behind on failure."""
        image = await self._images.ensure(ImageSpec(image=self._images.sandbox_image))
        container_id = ContainerId(record.id)
        handler = self._handlers.resolve(record.runtime_handler)
        async with Undo(tasks=self._tasks) as undo:
            undo.push("remove the pause container", lambda: self.remove(record))
            layers = tuple(layer.chain_id for layer in image.layers)
            root = await self._rootfs.prepare(
                RootfsRequest(container_id=container_id, layers=layers, users=record.users)
            )
            spec = await self._specs.pause(record, image, root)
            processes = await self._runtime.create(Launch(id=container_id, handler=handler, spec=spec))
            await self._runtime.start(container_id, handler)
        return processes

    async def remove(self, record: PodRecord) -> None:
        """Idempotent; works from the record of a half-made pod."""
        container_id = ContainerId(record.id)
        remembered = NOTHING
        if record.pause is not None and record.boot_id == self._boot_id:
            remembered = Remembered(processes=record.pause)
        await self._runtime.delete(container_id, record.runtime_handler, remembered=remembered)
        await self._rootfs.remove(container_id)
