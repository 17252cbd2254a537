"""Root file systems of containers: `<graph>/overlay/containers/<id>/{diff, work, merged}` over image layers."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.host import block_devices, blocking, mounts
from isulad_py.host.failures import translated
from isulad_py.host.tasks import to_the_end
from isulad_py.host.tree_usage import measure_tree
from isulad_py.model.errors import AlreadyExists, EngineError, NotFound, Unsupported
from isulad_py.model.ids import ChainId, ContainerId
from isulad_py.model.metrics import FilesystemCapacity
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.clock import Clock
from isulad_py.ports.storage import RootfsRequest
from isulad_py.ports.tasks import Tasks
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.loans import read_note, write_note
from isulad_py.storage.overlay import OverlayMount, mount_overlay

log = structlog.get_logger(__name__)

MEASURE_SECONDS: Final = 10.0
"""A writable layer is walked at most that often..."""
MEASURE_REST: Final = 20
"""...and a large one rests that many times as long as the walk took."""


class _Measured(Struct, frozen=True, kw_only=True):
    sample: FilesystemUsage
    again: float
    """Not before (monotonic)."""


class OverlayRootFilesystems:
    """Implements ports.storage.RootFilesystems. Everything is derived from the container's id."""

    def __init__(self, *, layers: LayerStore, tasks: Tasks, clock: Clock) -> None:
        self._layers = layers
        self._paths = layers.paths
        self._tasks = tasks
        self._clock = clock
        self._measured: dict[ContainerId, _Measured] = {}
        self._wanted: dict[ContainerId, None] = {}
        """Waiting to be measured, one after the other."""
        self._measuring = False

    @classmethod
    async def open(cls, *, layers: LayerStore, tasks: Tasks, clock: Clock) -> OverlayRootFilesystems:
        """Finds out which layers are in use, and begins to measure what is there."""
        store = cls(layers=layers, tasks=tasks, clock=clock)
        for container_id, chain_ids in (await blocking.run(store._borrowed)).items():
            layers.lend(f"container {container_id}", chain_ids)
            store._measure_soon(container_id)
        return store

    async def prepare(self, request: RootfsRequest) -> str:
        if request.quota_bytes:
            raise Unsupported("overlay2.size: quotas of root file systems are not supported here")
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
        self._remember(request.container_id, (2 * 4096, 2))

    async def remove(self, container_id: ContainerId) -> None:
        self._measured.pop(container_id, None)
        self._wanted.pop(container_id, None)
        await blocking.run(self._remove, container_id)
        self._layers.take_back(f"container {container_id}")
        self._layers.trash.empty()

    async def present(self) -> frozenset[ContainerId]:
        return frozenset(map(ContainerId, await blocking.run(_names, self._paths.containers)))

    async def mounted(self, container_id: ContainerId) -> bool:
        return await blocking.run(mounts.is_mountpoint, self.path_for(container_id))

    async def remount(self, request: RootfsRequest) -> str:
        self._layers.require(request.layers, f"container {request.container_id}")
        await to_the_end(blocking.run(self._remount, request), name="mount a root file system again")
        return self.path_for(request.container_id)

    async def usage(self, container_id: ContainerId) -> FilesystemUsage | None:
        measured = self._measured.get(container_id)
        if measured is None or self._clock.monotonic() >= measured.again:
            self._measure_soon(container_id)
        return measured.sample if measured is not None else None

    async def total_usage(self) -> FilesystemUsage:
        for container_id, measured in self._measured.items():
            if self._clock.monotonic() >= measured.again:
                self._measure_soon(container_id)
        samples = [measured.sample for measured in self._measured.values()]
        return FilesystemUsage(
            timestamp=self._clock.now_ns(),
            mountpoint=self._paths.root,
            used_bytes=sum(sample.used_bytes for sample in samples),
            inodes_used=sum(sample.inodes_used for sample in samples),
        )

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
            os.chown(f"{folder}/diff", below.st_uid, below.st_gid)
            Path(folder, "diff").chmod(stat.S_IMODE(below.st_mode))

    def _mount(self, request: RootfsRequest) -> None:
        name = f"containers/{request.container_id}"
        mount = OverlayMount(
            target=self._paths.merged(request.container_id),
            layers=request.layers,
            upper=f"{name}/diff",
            work=f"{name}/work",
            mount_label=request.mount_label,
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
        self._layers.trash.take(self._paths.container(container_id))

    def _borrowed(self) -> dict[ContainerId, tuple[ChainId, ...] | None]:
        """The layers under each root file system; None where something is mounted and nothing tells what."""
        found: dict[ContainerId, tuple[ChainId, ...] | None] = {}
        for container_id in map(ContainerId, _names(self._paths.containers)):
            chain_ids = read_note(self._paths.container(container_id))
            if chain_ids is None and not mounts.is_mountpoint(self._paths.merged(container_id)):
                chain_ids = ()  # half-made
            found[container_id] = chain_ids
        return found

    # Usage

    def _remember(self, container_id: ContainerId, measured: tuple[int, int], took_seconds: float = 0) -> None:
        used_bytes, inodes = measured
        sample = FilesystemUsage(
            timestamp=self._clock.now_ns(), mountpoint=self._paths.root, used_bytes=used_bytes, inodes_used=inodes
        )
        again = self._clock.monotonic() + max(MEASURE_SECONDS, took_seconds * MEASURE_REST)
        self._measured[container_id] = _Measured(sample=sample, again=again)

    def _measure_soon(self, container_id: ContainerId) -> None:
        self._wanted[container_id] = None
        if not self._measuring:
            try:
                self._tasks.start(self._measure(), name="measure writable layers")
            except RuntimeError:
                return  # the daemon stops
            self._measuring = True

    async def _measure(self) -> None:
        """One tree at a time: statistics must not take the disk from those who work on it."""
        try:
            while self._wanted:
                container_id = next(iter(self._wanted))
                begun = self._clock.monotonic()
                try:
                    measured = await blocking.run(measure_tree, f"{self._paths.container(container_id)}/diff")
                except EngineError as error:
                    log.warning("cannot measure a writable layer", container=container_id, error=str(error))
                    measured = None
                if measured is not None and container_id in self._wanted:  # not removed meanwhile
                    self._remember(container_id, measured, self._clock.monotonic() - begun)
                self._wanted.pop(container_id, None)
        finally:
            self._measuring = False


def _capacity(path: str) -> FilesystemCapacity:
    total_bytes, total_inodes, free_inodes = block_devices.space_of(path)
    device = block_devices.device_under(path)
    return FilesystemCapacity(
        device=device, total_bytes=total_bytes, total_inodes=total_inodes, free_inodes=free_inodes
    )


def _names(folder: str) -> list[str]:
    with translated("read"):
        return [path.name for path in Path(folder).iterdir()]
