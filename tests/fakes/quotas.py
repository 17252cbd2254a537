"""Project quotas in memory. They pass tests/contract/test_project_quota.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isulad_py.host.project_quota import QuotaState, QuotaUsage


class MemoryQuotas:
    """Implements storage.projects.Quotas for the directories below `root`. What is made in one with a project counts
    with it, wherever it is moved as a whole; limits are kept, but keep nobody from writing."""

    def __init__(self, root: Path, *, accounted: bool = True, enforced: bool = True) -> None:
        self.limits: dict[int, int] = {}
        self._root = root
        self._projects: dict[int, int] = {}
        """By inode."""
        self._state = QuotaState(accounted=accounted, enforced=enforced)

    def state(self) -> QuotaState:
        return self._state

    def project_of(self, directory: str) -> int:
        return self._projects.get(Path(directory).stat().st_ino, 0)

    def assign(self, directory: str, project: int) -> None:
        self._projects[Path(directory).stat().st_ino] = project

    def usage(self, project: int) -> QuotaUsage:
        states = [path.lstat() for path in self._counted(self._root, project, inherited=0)]
        used_bytes = sum(state.st_blocks * 512 for state in states)
        return QuotaUsage(used_bytes=used_bytes, inodes=len(states), limit_bytes=self.limits.get(project, 0))

    def limit(self, project: int, limit_bytes: int) -> None:
        self.limits[project] = limit_bytes

    def _counted(self, path: Path, project: int, *, inherited: int) -> Iterator[Path]:
        carried = self._projects.get(path.stat().st_ino, inherited)
        if carried == project:
            yield path
        for child in path.iterdir():
            if child.is_dir() and not child.is_symlink():
                yield from self._counted(child, project, inherited=carried)
            elif carried == project:
                yield child
