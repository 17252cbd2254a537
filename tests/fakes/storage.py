"""Layers and root file systems in memory. They pass tests/contract/test_layers.py and test_rootfs.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from isulad_py.model.errors import AlreadyExists, FailedPrecondition, NotFound
from isulad_py.model.ids import ChainId, ContainerId
from isulad_py.model.metrics import FilesystemCapacity
from isulad_py.model.pod import PodUsers
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.storage import Changes, RootfsRequest
from tests.fakes.faults import Faults


class MemoryLayers:
    """Implements ports.storage.Layers. Layers come in through `add` (FakeImageSource does so). Faults: remove, view,
    release."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.sizes: dict[ChainId, int] = {}
        self.mounted_views: dict[str, tuple[ChainId, ...]] = {}
        self.view_users: dict[str, PodUsers | None] = {}
        self.lent: dict[str, tuple[ChainId, ...]] = {}
        """To root file systems, which keep them from being removed."""
        self.recent: set[ChainId] = set()
        """Those that `young` finds."""
        self.expired = 0

    def add(self, chain_id: ChainId, size_bytes: int = 4096) -> None:
        self.sizes[chain_id] = size_bytes

    async def present(self) -> frozenset[ChainId]:
        return frozenset(self.sizes)

    async def remove(self, chain_ids: Collection[ChainId]) -> None:
        await self.faults.at("remove")
        used = frozenset().union(*self.mounted_views.values(), *self.lent.values())
        for chain_id in set(chain_ids) - used:
            self.sizes.pop(chain_id, None)

    async def young(self, chain_ids: Collection[ChainId]) -> frozenset[ChainId]:
        return frozenset(self.recent.intersection(chain_ids, self.sizes))

    async def expire(self) -> None:
        self.expired += 1

    async def total_usage(self) -> FilesystemUsage:
        return FilesystemUsage(
            timestamp=1, mountpoint="/", used_bytes=sum(self.sizes.values()), inodes_used=len(self.sizes)
        )

    async def view(self, key: str, chain_ids: tuple[ChainId, ...], users: PodUsers | None = None) -> str:
        await self.faults.at("view")
        if self.mounted_views.get(key, chain_ids) != chain_ids:
            raise AlreadyExists(f"view {key} shows other layers")
        _check_present(self, chain_ids, f"view {key}")
        self.mounted_views[key] = chain_ids
        self.view_users[key] = users
        return f"/fake/views/{key}"

    async def release(self, key: str) -> None:
        await self.faults.at("release")
        self.mounted_views.pop(key, None)
        self.view_users.pop(key, None)

    async def views(self) -> frozenset[str]:
        return frozenset(self.mounted_views)


class MemoryRootFilesystems:
    """Implements ports.storage.RootFilesystems. With `directory`, the mountpoints are real directories that `fill` may
    furnish (an image's /etc/passwd). `reboot` unmounts everything. Faults: prepare, fill_volumes, remove, changes,
    remount, usage."""

    def __init__(
        self,
        layers: MemoryLayers,
        *,
        directory: Path | None = None,
        fill: Callable[[Path], None] | None = None,
    ) -> None:
        self.faults = Faults()
        self.requests: dict[ContainerId, RootfsRequest] = {}
        self.mounts: set[ContainerId] = set()
        self.filled: dict[ContainerId, tuple[str, ...]] = {}
        self.used_bytes: dict[ContainerId, int] = {}
        self.obstacle = ""
        """To user namespaces."""
        self._layers = layers
        self._directory = directory
        self._fill = fill

    def reboot(self) -> None:
        self.mounts.clear()

    async def prepare(self, request: RootfsRequest) -> str:
        await self.faults.at("prepare")
        if request.container_id in self.requests:
            raise AlreadyExists(f"container {request.container_id} already has a root file system")
        _check_present(self._layers, request.layers, f"container {request.container_id}")
        if request.fill is not None:
            request.fill(f"/fake/containers/{request.container_id}/diff", ())
        self.requests[request.container_id] = request
        self._layers.lent[request.container_id] = request.layers
        self.used_bytes[request.container_id] = 4096
        return self._mount(request.container_id)

    async def remove(self, container_id: ContainerId) -> None:
        await self.faults.at("remove")
        self.requests.pop(container_id, None)
        self._layers.lent.pop(container_id, None)
        self.used_bytes.pop(container_id, None)
        self.filled.pop(container_id, None)
        self.mounts.discard(container_id)

    async def users_obstacle(self) -> str:
        return self.obstacle

    def volumes(self, container_id: ContainerId, paths: Sequence[str]) -> dict[str, str]:
        return {path: f"/fake/containers/{container_id}/volumes/{number}" for number, path in enumerate(paths)}

    async def fill_volumes(self, container_id: ContainerId, paths: Sequence[str]) -> None:
        await self.faults.at("fill_volumes")
        if "/hello" in paths:
            raise FailedPrecondition("/hello: not a directory")
        if "/missing" in paths:
            raise NotFound("/missing: no such directory")
        self.filled[container_id] = tuple(paths)

    async def present(self) -> frozenset[ContainerId]:
        return frozenset(self.requests)

    async def mounted(self, container_id: ContainerId) -> bool:
        return container_id in self.mounts

    async def changes(self, container_id: ContainerId) -> Changes:
        await self.faults.at("changes")
        if container_id not in self.requests:
            raise NotFound(f"container {container_id} has no writable layer")
        return Changes(upper=f"/fake/containers/{container_id}/diff", lower=())

    async def remount(self, request: RootfsRequest) -> str:
        await self.faults.at("remount")
        if request.container_id not in self.requests:
            raise NotFound(f"container {request.container_id} has no writable layer")
        return self._mount(request.container_id)

    async def usage(self, container_id: ContainerId) -> FilesystemUsage | None:
        await self.faults.at("usage")
        if container_id not in self.used_bytes:
            return None
        return FilesystemUsage(timestamp=1, mountpoint="/", used_bytes=self.used_bytes[container_id], inodes_used=1)

    async def total_usage(self) -> FilesystemUsage:
        return FilesystemUsage(
            timestamp=1, mountpoint="/", used_bytes=sum(self.used_bytes.values()), inodes_used=len(self.used_bytes)
        )

    async def capacity(self) -> FilesystemCapacity:
        return FilesystemCapacity(device="/dev/fake", major=8, minor=0, total_bytes=1 << 30)

    def path_for(self, container_id: ContainerId) -> str:
        return f"{self._directory or '/fake/containers'}/{container_id}/merged"

    def _mount(self, container_id: ContainerId) -> str:
        path = self.path_for(container_id)
        if self._directory is not None:
            Path(path).mkdir(parents=True, exist_ok=True)
            if self._fill is not None:
                self._fill(Path(path))
        self.mounts.add(container_id)
        return path


def _check_present(layers: MemoryLayers, chain_ids: tuple[ChainId, ...], who: str) -> None:
    for chain_id in chain_ids:
        if chain_id not in layers.sizes:
            raise NotFound(f"{who}: no layer {chain_id}")
