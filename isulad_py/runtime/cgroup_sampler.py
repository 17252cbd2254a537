"""Reads the files of many cgroups in one go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final

from isulad_py.host import blocking
from isulad_py.host.facts import UNIFIED
from isulad_py.model.errors import InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.model.stats import CgroupSample
from isulad_py.runtime import cgroup_values
from isulad_py.spec import cgroup_paths

FILE_LIMIT_BYTES: Final = 1024 * 1024
"""memory.stat of v2 has about 2 KiB, cgroup.procs 8 bytes a process."""
MAX_CHILDREN: Final = 256
"""Cgroups below one that are looked at for its processes."""

PRESSURE: Final = ("cpu.pressure", "memory.pressure", "io.pressure")
V1: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("cpuacct", ("cpuacct.usage", "cpuacct.stat")),
    ("memory", ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat")),
    ("pids", ("pids.current",)),
    (UNIFIED, PRESSURE),
)
V2: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        UNIFIED,
        (
            "cpu.stat",
            "memory.current",
            "memory.max",
            "memory.stat",
            "memory.swap.current",
            "memory.swap.max",
            "pids.current",
            *PRESSURE,
        ),
    ),
)
COUNTED: Final = ("pids", "memory", "cpuacct", UNIFIED)
"""The first of these that is mounted tells the processes."""


class CgroupFiles:
    """Implements ports.stats.CgroupSampler. `now_ns` gives nanoseconds since 1970 (of `time`, not of the engine's
    clock, whose readings belong to the loop's thread)."""

    def __init__(self, facts: HostFacts, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._v2 = facts.cgroup_version == 2
        mounts = facts.cgroup_mounts
        wanted = V2 if self._v2 else V1
        self._plan = [(mounts[key], names) for key, names in wanted if key in mounts]
        self._counted = next((mounts[key] for key in COUNTED if key in mounts), "")
        self._tick_ns = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") or 100)
        self._now_ns = now_ns

    async def sample(self, cgroup_paths: Sequence[str]) -> list[CgroupSample | None]:
        """One batch in one thread: handing each over would cost more than reading it."""
        if not cgroup_paths:
            return []
        return await blocking.run(self._sample_all, tuple(cgroup_paths))

    def _sample_all(self, recorded: tuple[str, ...]) -> list[CgroupSample | None]:
        return [self._sample(path) for path in recorded]

    def _sample(self, recorded: str) -> CgroupSample | None:
        try:
            path = cgroup_paths.recorded_path(recorded)
        except InvalidInput:
            return None
        if path in {"", "/"}:  # a record without a cgroup: the host's own figures are not a container's
            return None
        files: dict[str, bytes] = {}
        for mount, names in self._plan:
            _read_into(files, mount + path, names)
        if not files:
            return None
        processes = _processes(self._counted + path)
        timestamp = self._now_ns()
        if self._v2:
            return cgroup_values.sample_v2(files, timestamp=timestamp, processes=processes)
        return cgroup_values.sample_v1(files, timestamp=timestamp, tick_ns=self._tick_ns, processes=processes)


def _read_into(files: dict[str, bytes], directory: str, names: tuple[str, ...]) -> None:
    """Those files of the directory that can be read: one that is missing is a controller that is off."""
    try:
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for name in names:
            text = _read(name, fd)
            if text is not None:
                files[name] = text
    finally:
        os.close(fd)


def _read(name: str, directory_fd: int) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory_fd)
    except OSError:
        return None
    try:
        # A read that is not full is the whole file: these files are made in one piece (seq_file), page by page.
        text = part = os.read(fd, 8192)
        while part and len(text) < FILE_LIMIT_BYTES and len(part) >= 4000:
            part = os.read(fd, 8192)
            text += part
    except OSError:
        return None
    else:
        return text
    finally:
        os.close(fd)


def _processes(directory: str) -> int | None:
    """Processes in the cgroup and in those below it; the count of links tells whether there are any."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        total = cgroup_values.lines(_read("cgroup.procs", fd))
        below = os.fstat(fd).st_nlink > 2
    finally:
        os.close(fd)
    if below:
        for child in _children(directory):
            total = (total or 0) + (_processes(child) or 0)
    return total


def _children(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:MAX_CHILDREN]
    except OSError:
        return []
