"""Images of a graph on which no daemon runs: the part of the daemon that `isulad image` needs, for one command."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import registry_options
from isulad_py.engine.archives import Archives
from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.progress import Watch
from isulad_py.engine.registry import Registry
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.host.tasks import TaskOwner
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.archives import ArchiveImages
from isulad_py.model.container import ImageSpec
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.records import SqliteRecords
from isulad_py.storage.rootfs import OverlayRootFilesystems
from isulad_py.wire.translate.native_images import inspection


class GraphImages:
    """As wire.native.client.DaemonImages. Whoever uses it holds the graph's lock."""

    def __init__(self, *, images: Images, archives: Archives) -> None:
        self._images = images
        self._archives = archives
        self.load = archives.load
        self.save = archives.save
        self.import_rootfs = archives.import_rootfs
        self.tag = archives.tag

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, config: Config) -> AsyncIterator[GraphImages]:
        clock = SystemClock()
        failures: list[BaseException] = []
        async with contextlib.AsyncExitStack() as stack:
            tasks = TaskOwner(on_failure=lambda _, error: failures.append(error))
            records = await SqliteRecords.open(Path(config.graph, "isulad.db"), now_ns=clock.now_ns)
            stack.push_async_callback(records.close)
            stack.push_async_callback(tasks.close)
            layers = await LayerStore.open(config.graph, tasks=tasks, clock=clock, boot_id=read_facts().boot_id)
            rootfs = await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=clock)
            source = RegistryImages(layers=layers, options=registry_options(config), clock=clock)
            stack.push_async_callback(source.close)
            registry = Registry(records=records)
            await registry.load()
            images = Images(
                records=records,
                registry=registry,
                source=source,
                layers=layers,
                rootfs=rootfs,
                tasks=tasks,
                clock=clock,
                handlers=Handlers(names=(config.default_runtime,), default=config.default_runtime),
                sandbox_image=config.pod_sandbox_image,
            )
            await images.load()
            files = ArchiveImages(layers=layers, scratch=config.graph, policy_file=config.signature_policy)
            yield cls(images=images, archives=Archives(images=images, files=files))
        if failures:
            raise failures[0]

    async def listed(self) -> list[ImageRecord]:
        return self._images.list()

    async def pull(self, image: str, credentials: Credentials | None, watch: Watch) -> ImageRecord:
        return await self._images.pull(ImageSpec(image=image), credentials, watch)

    async def remove(self, image: str) -> None:
        self._images.require(image)
        await self._images.remove(image)

    async def inspect(self, image: str) -> str:
        return inspection(self._images.require(image))
