"""Cgroups as a kubelet makes them: one for each pod, in every v1 hierarchy or in the one of v2."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Hierarchy:
    mountpoint: Path
    kind: str
    """"cgroup" or "cgroup2"."""
    controllers: frozenset[str]


def hierarchies() -> list[Hierarchy]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            found.append(Hierarchy(Path(left.split(" ")[4]), kind, frozenset(options.split(","))))
    return found


def make_cgroup(path: str) -> None:
    """Make the cgroup in each hierarchy, ready to hold processes and further groups."""
    for hierarchy in hierarchies():
        folder = hierarchy.mountpoint
        for part in Path(path.lstrip("/")).parts:
            if hierarchy.kind == "cgroup2":
                _pass_controllers_on(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)
            if "cpuset" in hierarchy.controllers:
                _inherit_cpuset(folder)


def _pass_controllers_on(folder: Path) -> None:
    for controller in (folder / "cgroup.controllers").read_text(encoding="ascii").split():
        # Refused where the group holds processes itself: then its children go without.
        with contextlib.suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def _inherit_cpuset(folder: Path) -> None:
    """A new v1 cpuset is empty, and nothing can enter it."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (folder / name).read_text(encoding="ascii").strip():
            (folder / name).write_text((folder.parent / name).read_text(encoding="ascii"), encoding="ascii")


def cgroups_named(word: str, depth: int = 2) -> list[Path]:
    """Folders, in any hierarchy and down to the depth, with the word in their name."""
    found: list[Path] = []
    for hierarchy in hierarchies():
        level = [hierarchy.mountpoint]
        for _ in range(depth):
            below = [Path(entry.path) for folder in level for entry in _folders(folder)]
            found += [folder for folder in below if word in folder.name]
            level = [folder for folder in below if word not in folder.name]
    return found


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def processes_in(folder: Path) -> set[int]:
    """Process ids in the cgroup and in all below it."""
    pids: set[int] = set()
    for path, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            pids.update(map(int, re.findall(r"\d+", (Path(path) / "cgroup.procs").read_text(encoding="ascii"))))
    return pids


def remove_cgroup(folder: Path, seconds: float = 2) -> bool:
    """Remove the folder and all below; a group stays busy for a moment after its last process is gone."""
    deadline = time.monotonic() + seconds
    while folder.exists():
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                Path(path).rmdir()
        if folder.exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
    return True
