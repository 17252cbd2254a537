"""Cgroups whose figures a test sets."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from isulad_py.model.metrics import CgroupDetails
from isulad_py.model.stats import CgroupSample


class FakeSampler:
    """Implements ports.stats.CgroupSampler."""

    def __init__(self) -> None:
        self.figures: dict[str, CgroupSample] = {}
        self.further: dict[str, CgroupDetails] = {}
        self.calls = 0

    def put(self, path: str, **figures: int | None) -> None:
        """Changes the figures of a cgroup, which exists from then on."""
        old = self.figures.get(path, CgroupSample(timestamp=1))
        self.figures[path] = msgspec.structs.replace(old, **figures)

    def put_details(self, path: str, **figures: object) -> None:
        """The same for the details."""
        self.put(path)
        self.further[path] = msgspec.structs.replace(self.further.get(path, CgroupDetails()), **figures)

    def drop(self, path: str) -> None:
        self.figures.pop(path, None)

    async def sample(self, cgroup_paths: Sequence[str]) -> list[CgroupSample | None]:
        self.calls += 1
        return [self.figures.get(path) for path in cgroup_paths]

    async def details(self, cgroup_paths: Sequence[str]) -> list[tuple[CgroupSample, CgroupDetails] | None]:
        return [
            (self.figures[path], self.further.get(path, CgroupDetails())) if path in self.figures else None
            for path in cgroup_paths
        ]
