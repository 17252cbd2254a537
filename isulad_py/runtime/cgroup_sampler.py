"""Reads the files of many cgroups in one go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from isulad_py.host import block_devices, blocking
from isulad_py.host.facts import UNIFIED
from isulad_py.model.errors import InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.model.metrics import CgroupDetails
from isulad_py.model.stats import CgroupSample
from isulad_py.runtime import cgroup_details, cgroup_values, members, open_files
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
Plan = list[tuple[str, tuple[str, ...]]]
"""Mount points, each with the files to be read from a cgroup's directory below it."""

COUNTED: Final = ("pids", "memory", "cpuacct", UNIFIED)
"""The first of these that is mounted tells the processes."""


class CgroupFiles:
    """Implements ports.stats.CgroupSampler. `now_ns` gives nanoseconds since 1970 (of `time`, not of the engine's
    clock, whose readings belong to the loop's thread)."""

    def __init__(self, facts: HostFacts, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._v2 = facts.cgroup_version == 2
        mounts = facts.cgroup_mounts
        wanted = V2 if self._v2 else V1
        self._plan: Plan = [(mounts[key], names) for key, names in wanted if key in mounts]
        self._sizes = facts.hugepage_sizes
        self._further = self._plan + self._further_plan(mounts)
        self._counted = next((mounts[key] for key in COUNTED if key in mounts), "")
        self._tick_ns = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") or 100)
        self._now_ns = now_ns

    def _further_plan(self, mounts: dict[str, str]) -> Plan:
        pages = cgroup_details.hugepage_files(self._sizes, v2=self._v2)
        if self._v2:
            wanted = [(UNIFIED, (*cgroup_details.V2_FILES, *pages))]
        else:
            wanted = [*cgroup_details.V1_FILES, ("hugetlb", pages)]
        return [(mounts[key], names) for key, names in wanted if key in mounts]

    async def sample(self, cgroup_paths: Sequence[str]) -> list[CgroupSample | None]:
        """One batch in one thread: handing each over would cost more than reading it."""
        if not cgroup_paths:
            return []
        return await blocking.run(self._sample_all, tuple(cgroup_paths))

    async def details(self, cgroup_paths: Sequence[str]) -> list[tuple[CgroupSample, CgroupDetails] | None]:
        if not cgroup_paths:
            return []
        return await blocking.run(self._details_all, tuple(cgroup_paths))

    def _sample_all(self, recorded: tuple[str, ...]) -> list[CgroupSample | None]:
        found: list[CgroupSample | None] = []
        for path in recorded:
            files = self._read(path, self._plan)
            found.append(self._sampled(files, _processes(self._directory(path))) if files else None)
        return found

    def _details_all(self, recorded: tuple[str, ...]) -> list[tuple[CgroupSample, CgroupDetails] | None]:
        return [self._detailed(path) for path in recorded]

    def _detailed(self, recorded: str) -> tuple[CgroupSample, CgroupDetails] | None:
        files = self._read(recorded, self._further)
        if not files:
            return None
        pids = sorted(members.processes(self._directory(recorded)))
        read = cgroup_details.details_v2 if self._v2 else cgroup_details.details_v1
        details = read(files, sizes=self._sizes, device_name=_device_name)
        opened = open_files.count(pids)
        return self._sampled(files, len(pids)), msgspec.structs.replace(
            details,
            descriptors=opened.descriptors,
            sockets=opened.sockets,
            open_files_soft_limit=open_files.soft_limit(pids[0]) if pids else None,
        )

    def _read(self, recorded: str, plan: Plan) -> dict[str, bytes]:
        """By name; empty where there is no such cgroup."""
        path = _path(recorded)
        files: dict[str, bytes] = {}
        if path:
            for mount, names in plan:
                _read_into(files, mount + path, names)
        return files

    def _directory(self, recorded: str) -> str:
        """The one that tells the processes; empty where none does."""
        return self._counted + _path(recorded) if self._counted else ""

    def _sampled(self, files: dict[str, bytes], processes: int | None) -> CgroupSample:
        timestamp = self._now_ns()
        if self._v2:
            return cgroup_values.sample_v2(files, timestamp=timestamp, processes=processes)
        return cgroup_values.sample_v1(files, timestamp=timestamp, tick_ns=self._tick_ns, processes=processes)


_device_name: Final = lru_cache(maxsize=256)(block_devices.name_of)


def _path(recorded: str) -> str:
    """Empty for a record without a cgroup: the host's own figures are not a container's."""
    try:
        path = cgroup_paths.recorded_path(recorded)
    except InvalidInput:
        return ""
    return "" if path == "/" else path


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
