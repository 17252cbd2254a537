"""Samples of cgroups, read in process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from isulad_py.model.metrics import CgroupDetails
from isulad_py.model.stats import CgroupSample


class CgroupSampler(Protocol):
    async def sample(self, cgroup_paths: Sequence[str]) -> list[CgroupSample | None]:
        """One entry a path, in order; None where the cgroup is gone. Off the loop, in one batch."""
        ...

    async def details(self, cgroup_paths: Sequence[str]) -> list[tuple[CgroupSample, CgroupDetails] | None]:
        """The same with what only metrics need, open files of processes among it: five times as dear."""
        ...
