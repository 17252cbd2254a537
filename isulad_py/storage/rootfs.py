"""Root file systems of containers: `<graph>/overlay/containers/<id>/{diff, work, merged}` over image layers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from isulad_py.host import block_devices, blocking, mounts, user_namespaces
from isulad_py.host.failures import translated
from isulad_py.host.project_quota import ProjectQuotas
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import AlreadyExists, EngineError, HostFailure, NotFound
from isulad_py.model.ids import ChainId, ContainerId
from isulad_py.model.metrics import FilesystemCapacity
from isulad_py.model.pod import PodUsers
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.clock import Clock
from isulad_py.ports.storage import Changes, RootfsRequest
from isulad_py.ports.tasks import Tasks
from isulad_py.storage import volumes
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.loans import read_note, write_note
from isulad_py.storage.overlay import OverlayMount, mount_overlay
from isulad_py.storage.projects import Projects
from isulad_py.storage.writable_usage import WritableUsage

_PROBE_IDS: Final = UserNamespace(
    mode=NamespaceMode.POD,
    uids=(IdMapping(container_id=0, host_id=65536, length=65536),),
    gids=(IdMapping(container_id=0, host_id=65536, length=65536),),
)


class OverlayRootFilesystems:
    """Implements ports.storage.RootFilesystems. Everything is derived from the container's id."""

    def __init__(self, *, layers: LayerStore, projects: Projects, usage: WritableUsage) -> None:
        self._layers = layers
        self._paths = layers.paths
        self._projects = projects
        self._usage = usage
        self._probing = asyncio.Lock()
        self._obstacle: str | None = None

    @classmethod
    async def open(
        cls, *, layers: LayerStore, tasks: Tasks, clock: Clock, limit_bytes: int = 0
    ) -> OverlayRootFilesystems:
        """Finds out which layers are in use, and begins to measure what is there. `limit_bytes` is for containers that
        name no limit; Unsupported where there is one that the file system cannot keep."""
        root = layers.paths.root
        projects = await blocking.run(Projects, ProjectQuotas(root), root=root, limit_bytes=limit_bytes)
        usage = WritableUsage(layers.paths, projects=projects, tasks=tasks, clock=clock)
        store = cls(layers=layers, projects=projects, usage=usage)
        for container_id, chain_ids in (await blocking.run(store._borrowed)).items():
            layers.lend(f"container {container_id}", chain_ids)
            usage.found(container_id)
        return store

    async def prepare(self, request: RootfsRequest) -> str:
        self._projects.limit_for(request.quota_bytes)  # for its refusal
        borrower = f"container {request.container_id}"
        self._layers.require(request.layers, borrower)
        self._layers.lend(f"making {borrower}", request.layers)
        try:
            await to_the_end(self._prepare_lent(request, borrower), name="prepare a root file system")
        finally:
            self._layers.take_back(f"making {borrower}")
        return self.path_for(request.container_id)

    async def _prepare_lent(self, request: RootfsRequest, borrower: str) -> None:
        await blocking.run(self._prepare, request)
        self._layers.lend(borrower, request.layers)
        self._usage.made(request.container_id)

    async def remove(self, container_id: ContainerId) -> None:
        self._usage.forget(container_id)
        await blocking.run(self._remove, container_id)
        self._layers.take_back(f"container {container_id}")
        self._layers.trash.empty()

    def volumes(self, container_id: ContainerId, paths: Sequence[str]) -> dict[str, str]:
        return volumes.directories(self._paths.container(container_id), tuple(paths))

    async def fill_volumes(self, container_id: ContainerId, paths: Sequence[str]) -> None:
        folder, root = self._paths.container(container_id), self.path_for(container_id)
        wanted = self.volumes(container_id, paths)
        # To its end, also when cancelled: what is removed must not be written to.
        include = partial(self._projects.include, container_id)
        await to_the_end(blocking.run(volumes.fill, folder, root, wanted, include), name="fill volumes")

    async def present(self) -> frozenset[ContainerId]:
        return frozenset(map(ContainerId, await blocking.run(_names, self._paths.containers)))

    async def users_obstacle(self) -> str:
        """Tried out, once: kernel and file system each have their own say."""
        async with self._probing:
            if self._obstacle is None:
                try:
                    self._obstacle = await self._find_obstacle()
                except EngineError as error:
                    return str(error)  # the disk is full, or the like: another time it may do
        return self._obstacle or await blocking.run(_closed_above, self._paths.containers)

    async def _find_obstacle(self) -> str:
        probe = ContainerId(f"probe-{secrets.token_hex(8)}")
        try:
            async with user_namespaces.held(_PROBE_IDS) as pid:
                users = PodUsers(ids=_PROBE_IDS, path=f"/proc/{pid}/ns/user")
                await to_the_end(self._probe(RootfsRequest(container_id=probe, layers=(), users=users)), name="probe")
        except HostFailure as error:
            return str(error)
        return ""

    async def _probe(self, request: RootfsRequest) -> None:
        await blocking.run(self._prepare, request)
        await blocking.run(self._remove, request.container_id)

    async def mounted(self, container_id: ContainerId) -> bool:
        return await blocking.run(mounts.is_mountpoint, self.path_for(container_id))

    async def changes(self, container_id: ContainerId) -> Changes:
        folder = self._paths.container(container_id)
        layers = await blocking.run(read_note, folder)
        if layers is None:
            raise NotFound(f"container {container_id} has no writable layer")
        return Changes(upper=f"{folder}/diff", lower=self._below(layers))

    async def remount(self, request: RootfsRequest) -> str:
        self._layers.require(request.layers, f"container {request.container_id}")
        await to_the_end(blocking.run(self._remount, request), name="mount a root file system again")
        return self.path_for(request.container_id)

    async def usage(self, container_id: ContainerId) -> FilesystemUsage | None:
        return await self._usage.of(container_id)

    async def total_usage(self) -> FilesystemUsage:
        return await self._usage.total()

    async def capacity(self) -> FilesystemCapacity:
        return await blocking.run(_capacity, self._paths.root)

    def path_for(self, container_id: ContainerId) -> str:
        return self._paths.merged(container_id)

    # Directories

    def _prepare(self, request: RootfsRequest) -> None:
        folder = self._paths.container(request.container_id)
        with translated("make a writable layer:"):
            try:
                Path(folder).mkdir(0o700)
            except FileExistsError as error:
                message = f"container {request.container_id} already has a root file system"
                raise AlreadyExists(message) from error
        try:
            self._make_directories(folder, request)
            if request.fill is not None:
                # Not through the mount: what must hide something of the image has overlay's own form.
                request.fill(f"{folder}/diff", self._below(request.layers))
            self._mount(request)
        except BaseException as error:
            try:
                self._remove(request.container_id)
            except EngineError as failure:
                if isinstance(error, EngineError):
                    error.cleanup.append(failure)
            raise

    def _make_directories(self, folder: str, request: RootfsRequest) -> None:
        """The root directory of the container is that of the writable layer: it takes after the image's."""
        with translated("make a writable layer:"):
            below = Path(self._paths.diff(request.layers[-1]) if request.layers else self._paths.empty).stat()
            for name in ("work", "merged", "diff"):
                Path(folder, name).mkdir(0o700)
            write_note(folder, request.layers)
            uid, gid = below.st_uid, below.st_gid
            if request.users is not None:
                uid, gid = request.users.ids.owner(uid, gid)
                root_uid, root_gid = request.users.ids.owner(0, 0)
                os.chown(f"{folder}/work", root_uid, root_gid)
                # The runtime looks for the root file system as root of the user namespace.
                os.chown(folder, -1, root_gid)
                Path(folder).chmod(0o710)
            os.chown(f"{folder}/diff", uid, gid)
            Path(folder, "diff").chmod(stat.S_IMODE(below.st_mode))
        self._projects.give(request.container_id, folder, self._projects.limit_for(request.quota_bytes))

    def _below(self, layers: tuple[ChainId, ...]) -> tuple[str, ...]:
        return tuple(self._paths.diff(chain_id) for chain_id in reversed(layers))

    def _mount(self, request: RootfsRequest) -> None:
        name = f"containers/{request.container_id}"
        mount = OverlayMount(
            target=self._paths.merged(request.container_id),
            layers=request.layers,
            upper=f"{name}/diff",
            work=f"{name}/work",
            mount_label=request.mount_label,
            userns_path=request.users.path if request.users else "",
            folder=self._paths.container(request.container_id),
        )
        mount_overlay(self._paths, mount)

    def _remount(self, request: RootfsRequest) -> None:
        folder = self._paths.container(request.container_id)
        if not Path(folder, "diff").is_dir():
            raise NotFound(f"container {request.container_id} has no writable layer")
        merged = self._paths.merged(request.container_id)
        with translated("make a mountpoint:"), contextlib.suppress(FileExistsError):
            Path(merged).mkdir(0o700)
        if not mounts.is_mountpoint(merged):
            self._mount(request)

    def _remove(self, container_id: ContainerId) -> None:
        # Lazily: a process that still holds a file there must not keep the container from going.
        mounts.unmount_under(self._paths.container(container_id))
        self._projects.take_back(container_id)
        self._layers.trash.take(self._paths.container(container_id))

    def _borrowed(self) -> dict[ContainerId, tuple[ChainId, ...] | None]:
        """The layers under each root file system; None where something is mounted and nothing tells what."""
        found: dict[ContainerId, tuple[ChainId, ...] | None] = {}
        for container_id in map(ContainerId, _names(self._paths.containers)):
            folder = self._paths.container(container_id)
            chain_ids = read_note(folder)
            if Path(folder, "diff").is_dir():
                self._projects.take_up(container_id, folder)
            if chain_ids is None and not mounts.is_mountpoint(self._paths.merged(container_id)):
                chain_ids = ()  # half-made
            found[container_id] = chain_ids
        return found


def _capacity(path: str) -> FilesystemCapacity:
    major, minor = block_devices.numbers_under(path)
    device = block_devices.device_under(path)
    return FilesystemCapacity(device=device, major=major, minor=minor, total_bytes=block_devices.size_of(path))


def _closed_above(folder: str) -> str:
    """Which directory keeps root of a user namespace, as which the runtime comes, from `folder`; empty where none."""
    for path in Path(folder).parents:
        with translated("look at"):
            mode = path.stat().st_mode
        if not mode & stat.S_IXOTH:
            return f"{path} cannot be searched by everybody (mode {stat.S_IMODE(mode):o})"
    return ""


def _names(folder: str) -> list[str]:
    with translated("read"):
        return [path.name for path in Path(folder).iterdir()]
