"""Root file systems of both kinds, told apart by the container's id."""

from __future__ import annotations

from collections.abc import Sequence

from isulad_py.host import blocking, mounts
from isulad_py.model.errors import FailedPrecondition, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.model.metrics import FilesystemCapacity
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.storage import Changes, RootfsRequest
from isulad_py.storage.external import FIELD
from isulad_py.storage.external_rootfs import ExternalRootFilesystems
from isulad_py.storage.rootfs import OverlayRootFilesystems


class NodeRootFilesystems:
    """Implements ports.storage.RootFilesystems."""

    def __init__(self, *, overlay: OverlayRootFilesystems, external: ExternalRootFilesystems) -> None:
        self._overlay = overlay
        self._external = external

    async def prepare(self, request: RootfsRequest) -> str:
        return await (self._external if request.external else self._overlay).prepare(request)

    async def remove(self, container_id: ContainerId) -> None:
        await self._external.remove(container_id)
        await self._overlay.remove(container_id)

    async def users_obstacle(self) -> str:
        return await self._overlay.users_obstacle()

    def volumes(self, container_id: ContainerId, paths: Sequence[str]) -> dict[str, str]:
        return self._overlay.volumes(container_id, paths)

    async def fill_volumes(self, container_id: ContainerId, paths: Sequence[str]) -> None:
        """Not for an external root, which keeps what is written into it."""
        if container_id in self._external:
            raise Unsupported(f"{FIELD}: volumes of an image are part of the root")
        await self._overlay.fill_volumes(container_id, paths)

    async def present(self) -> frozenset[ContainerId]:
        return self._external.present() | await self._overlay.present()

    async def mounted(self, container_id: ContainerId) -> bool:
        return await blocking.run(mounts.is_mountpoint, self.path_for(container_id))

    async def changes(self, container_id: ContainerId) -> Changes:
        if container_id in self._external:
            raise FailedPrecondition(
                f"container {container_id} has a root of this host: its changes are not kept apart"
            )
        return await self._overlay.changes(container_id)

    async def remount(self, request: RootfsRequest) -> str:
        if request.container_id in self._external:
            return await self._external.remount(request.container_id)
        return await self._overlay.remount(request)

    async def usage(self, container_id: ContainerId) -> FilesystemUsage | None:
        return None if container_id in self._external else await self._overlay.usage(container_id)

    async def total_usage(self) -> FilesystemUsage:
        return await self._overlay.total_usage()

    async def capacity(self) -> FilesystemCapacity:
        return await self._overlay.capacity()

    def path_for(self, container_id: ContainerId) -> str:
        return (self._external if container_id in self._external else self._overlay).path_for(container_id)
