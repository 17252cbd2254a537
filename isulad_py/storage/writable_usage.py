"""What writable layers take: read from the file system where it counts (projects), else measured in the background."""

from __future__ import annotations

from typing import Final

import structlog
from msgspec import Struct

from isulad_py.host import blocking
from isulad_py.host.tree_usage import measure_tree
from isulad_py.model.errors import EngineError
from isulad_py.model.ids import ContainerId
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.clock import Clock
from isulad_py.ports.tasks import Tasks
from isulad_py.storage.paths import OverlayPaths
from isulad_py.storage.projects import Projects

log = structlog.get_logger(__name__)

MEASURE_SECONDS: Final = 10.0
"""A writable layer is walked at most that often..."""
MEASURE_REST: Final = 20
"""...and a large one rests that many times as long as the walk took."""
NEW: Final = (2 * 4096, 2)
"""Of a writable layer in which nothing has been written."""


class _Measured(Struct, frozen=True, kw_only=True):
    sample: FilesystemUsage
    again: float
    """Not before (monotonic)."""


class WritableUsage:
    def __init__(self, paths: OverlayPaths, *, projects: Projects, tasks: Tasks, clock: Clock) -> None:
        self._paths = paths
        self._projects = projects
        self._tasks = tasks
        self._clock = clock
        self._measured: dict[ContainerId, _Measured] = {}
        self._wanted: dict[ContainerId, None] = {}
        """Waiting to be measured, one after the other."""
        self._measuring = False

    def made(self, container_id: ContainerId) -> None:
        if not self._projects.has(container_id):
            self._remember(container_id, NEW)

    def found(self, container_id: ContainerId) -> None:
        """One that a former daemon made."""
        if not self._projects.has(container_id):
            self._measure_soon(container_id)

    def forget(self, container_id: ContainerId) -> None:
        """Idempotent."""
        self._measured.pop(container_id, None)
        self._wanted.pop(container_id, None)

    async def of(self, container_id: ContainerId) -> FilesystemUsage | None:
        counted = await blocking.run(self._projects.usage, container_id) if self._projects.has(container_id) else None
        if counted is not None:
            return self._sample(counted.used_bytes, counted.inodes)
        measured = self._measured.get(container_id)
        if measured is None or self._clock.monotonic() >= measured.again:
            self._measure_soon(container_id)
        return measured.sample if measured is not None else None

    async def total(self) -> FilesystemUsage:
        for container_id, measured in self._measured.items():
            if self._clock.monotonic() >= measured.again:
                self._measure_soon(container_id)
        counted = await blocking.run(self._projects.usages)
        samples = [measured.sample for measured in self._measured.values()]
        return self._sample(
            sum(sample.used_bytes for sample in samples) + sum(each.used_bytes for each in counted),
            sum(sample.inodes_used for sample in samples) + sum(each.inodes for each in counted),
        )

    def _sample(self, used_bytes: int, inodes: int) -> FilesystemUsage:
        return FilesystemUsage(
            timestamp=self._clock.now_ns(), mountpoint=self._paths.root, used_bytes=used_bytes, inodes_used=inodes
        )

    def _remember(self, container_id: ContainerId, measured: tuple[int, int], took_seconds: float = 0) -> None:
        again = self._clock.monotonic() + max(MEASURE_SECONDS, took_seconds * MEASURE_REST)
        self._measured[container_id] = _Measured(sample=self._sample(*measured), again=again)

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
                    measured = await blocking.run(_measure_parts, self._paths.container(container_id))
                except EngineError as error:
                    log.warning("cannot measure a writable layer", container=container_id, error=str(error))
                    measured = None
                if measured is not None and container_id in self._wanted:  # not removed meanwhile
                    self._remember(container_id, measured, self._clock.monotonic() - begun)
                self._wanted.pop(container_id, None)
        finally:
            self._measuring = False


def _measure_parts(folder: str) -> tuple[int, int] | None:
    """Bytes and inodes of the writable layer and of the image's volumes; None where the container is gone."""
    layer = measure_tree(f"{folder}/diff")
    volumes = measure_tree(f"{folder}/volumes") or (0, 0)
    return layer and (layer[0] + volumes[0], layer[1] + volumes[1])
