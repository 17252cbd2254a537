"""The cgroup directories of pods and containers, on v1, v2 and a mixture."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from isulad_py.host import blocking, process
from isulad_py.host.facts import UNIFIED
from isulad_py.host.failures import translate
from isulad_py.model.errors import HostFailure, InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.ports.clock import Clock
from isulad_py.spec import cgroup_paths

REMOVE_TRIES: Final = 50
REMOVE_PAUSE_SECONDS: Final = 0.02
"""A cgroup stays busy until its last process is reaped, which is somebody else's work."""
SYSTEMCTL_SECONDS: Final = 20.0


class CgroupTree:
    """Makes and removes cgroups below the host's hierarchies.

    With the systemd driver systemd owns the tree: slices come into being with the first scope in them, and are
    stopped through it.
    """

    def __init__(self, facts: HostFacts, *, systemd: bool, clock: Clock) -> None:
        self._version = facts.cgroup_version
        self._mounts: Mapping[str, str] = facts.cgroup_mounts
        self._systemd = systemd
        self._clock = clock

    def directories(self, recorded: str, *, all_hierarchies: bool = True) -> list[str]:
        """The cgroup's directory in each hierarchy, present or not; without `all_hierarchies` not in a cgroup2 tree
        that lies beside v1 ones: kubelets know nothing of it, and would never remove their part there."""
        path = cgroup_paths.recorded_path(recorded)
        if path in {"", "/"}:
            raise InvalidInput("linux.cgroup_parent: the root cgroup is not a pod's")
        keys = [key for key in self._mounts if all_hierarchies or self._version == 2 or key != UNIFIED]
        return list(dict.fromkeys(self._mounts[key] + path for key in keys))

    async def ensure(self, recorded: str) -> None:
        """Makes the cgroup wherever it is missing, usable at once. Raises HostFailure or ResourceExhausted."""
        directories = self.directories(recorded, all_hierarchies=False)
        if not self._systemd:
            await blocking.run(self._ensure, directories)

    def _ensure(self, directories: list[str]) -> None:
        roots = sorted(set(self._mounts.values()), key=len, reverse=True)
        cpuset = self._mounts.get("cpuset")
        for directory in directories:
            root = next(root for root in roots if directory.startswith(root + "/"))
            try:
                _make_below(root, directory, inherit_cpuset=root == cpuset, delegate=self._version == 2)
            except OSError as error:
                raise translate("make cgroup", error) from error

    async def remove(self, recorded: str) -> None:
        """Removes the cgroup and whatever is below it, in every hierarchy, waiting a moment for processes that are
        just ending. Only for what this engine made. Idempotent. Raises HostFailure naming what stays busy."""
        directories = self.directories(recorded)
        if self._systemd and recorded.endswith(".slice"):
            await self._stop_slice(recorded, directories)
        for _ in range(REMOVE_TRIES):
            directories = await blocking.run(_remove, directories)
            if not directories:
                return
            await self._clock.sleep(REMOVE_PAUSE_SECONDS)
        raise HostFailure(f"remove cgroup {directories[0]}: processes are still in it")

    async def _stop_slice(self, recorded: str, directories: list[str]) -> None:
        if not await blocking.run(_any_present, directories):
            return
        unit = cgroup_paths.slice_name(recorded)
        command = process.Command(argv=("systemctl", "stop", "--", unit), timeout_seconds=SYSTEMCTL_SECONDS)
        (await process.run(command)).check(f"stop {unit}")


def _make_below(root: str, directory: str, *, inherit_cpuset: bool, delegate: bool) -> None:
    here = root
    for part in directory[len(root) :].strip("/").split("/"):
        if delegate:
            _enable_controllers(here)
        parent, here = here, f"{here}/{part}"
        try:
            Path(here).mkdir(0o755)
        except FileExistsError:
            if not inherit_cpuset:
                continue
        if inherit_cpuset:
            _inherit_cpuset(parent, here)


def _inherit_cpuset(parent: str, child: str) -> None:
    """On v1 a new cpuset is empty and takes no process until it has CPUs and memory nodes (cpuset(7))."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        own = Path(child, name)
        if not own.read_bytes().strip():
            own.write_bytes(Path(parent, name).read_bytes())


def _enable_controllers(directory: str) -> None:
    """On v2 a child has the controllers that its parent hands down. One that cannot be (processes in the parent, a
    parent that does not own it) is passed over: limits that need it are then refused where they are set."""
    available = Path(directory, "cgroup.controllers").read_text().split()
    enabled = set(Path(directory, "cgroup.subtree_control").read_text().split())
    for name in available:
        if name in enabled:
            continue
        try:
            Path(directory, "cgroup.subtree_control").write_text(f"+{name}")
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}:
                raise


def _any_present(directories: list[str]) -> bool:
    return any(Path(directory).is_dir() for directory in directories)


def _remove(directories: list[str]) -> list[str]:
    """Those that are still busy."""
    return [directory for directory in directories if not _remove_one(directory)]


def _remove_one(directory: str) -> bool:
    gone = True
    for path in reversed(_tree(directory)):
        try:
            os.rmdir(path)  # noqa: PTH106 - names from scandir
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.ENOTEMPTY}:
                raise translate("remove cgroup", error) from error
            gone = False
    return gone


def _tree(directory: str) -> list[str]:
    """The cgroup and all below it, parents first; empty where there is none."""
    found = [directory] if Path(directory).is_dir() else []
    for path in found:
        try:
            with os.scandir(path) as entries:
                found.extend(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            continue
    return found
