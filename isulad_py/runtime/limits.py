"""The limits that a container has now: read before they are changed, and put back where a change fails half-way.

Synchronous; callers on the loop go through `host.blocking`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from isulad_py.model.errors import FailedPrecondition
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.runtime.cgroup_values import UNLIMITED, number, pairs
from isulad_py.runtime.members import UNIFIED

log = structlog.get_logger(__name__)

NO_LIMIT: Final = -1

_V1: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "cpu_shares": (("cpu", "cpu.shares"),),
    "cpu_quota_us": (("cpu", "cpu.cfs_quota_us"),),
    "cpu_period_us": (("cpu", "cpu.cfs_period_us"),),
    "cpuset_cpus": (("cpuset", "cpuset.cpus"),),
    "cpuset_mems": (("cpuset", "cpuset.mems"),),
    # The kernel keeps memory at or below memory with swap: a runtime may have to move both for one.
    "memory_limit_bytes": (("memory", "memory.limit_in_bytes"), ("memory", "memory.memsw.limit_in_bytes")),
    "memory_swap_limit_bytes": (("memory", "memory.limit_in_bytes"), ("memory", "memory.memsw.limit_in_bytes")),
}
_V2: Final[dict[str, tuple[str, ...]]] = {
    "cpu_shares": ("cpu.weight",),
    "cpu_quota_us": ("cpu.max",),
    "cpu_period_us": ("cpu.max",),
    "cpuset_cpus": ("cpuset.cpus",),
    "cpuset_mems": ("cpuset.mems",),
    "memory_limit_bytes": ("memory.max", "memory.swap.max"),
    "memory_swap_limit_bytes": ("memory.max", "memory.swap.max"),
}
"""Files that a change of each limit may write, by the field of `Resources`."""


class Held(Struct, frozen=True, kw_only=True):
    """Limits as they were."""

    files: dict[str, str]
    """Contents by path."""
    v2: bool
    oom_scores: dict[int, int] = {}
    """By process."""


def hold(cgroups: Mapping[str, str], wanted: Resources, pids: Iterable[int]) -> Held:
    """What a change to `wanted` can touch; `cgroups` are the container's directories by controller."""
    v2 = "memory" not in cgroups and UNIFIED in cgroups
    paths = _paths_v2(cgroups[UNIFIED], wanted) if v2 else _paths_v1(cgroups, wanted)
    contents = {path: _read(path) for path in dict.fromkeys(paths)}
    scores = {pid: score for pid in pids if (score := _oom_score(pid)) is not None} if wanted.oom_score_adj else {}
    return Held(files={path: text for path, text in contents.items() if text is not None}, v2=v2, oom_scores=scores)


def _paths_v1(cgroups: Mapping[str, str], wanted: Resources) -> list[str]:
    pairs = [pair for field, known in _V1.items() if getattr(wanted, field) for pair in known]
    pairs += [("hugetlb", f"hugetlb.{limit.page_size}.limit_in_bytes") for limit in wanted.hugepage_limits]
    return [f"{cgroups[key]}/{name}" for key, name in pairs if key in cgroups]


def _paths_v2(directory: str, wanted: Resources) -> list[str]:
    names = [name for field, known in _V2.items() if getattr(wanted, field) for name in known]
    names += [f"hugetlb.{limit.page_size}.max" for limit in wanted.hugepage_limits]
    return [f"{directory}/{name}" for name in (*names, *wanted.unified)]


def put_back(held: Held) -> None:
    """As far as the kernel lets: what differs is written, twice over, because one limit can stand in another's way."""
    for _ in range(2):
        for path, text in held.files.items():
            if _read(path) != text:
                _write(path, text)
    for pid, score in held.oom_scores.items():
        set_oom_score(pid, score)
    left = [path for path, text in held.files.items() if _read(path) not in {text, None}]
    if left:
        log.warning("limits could not be put back", files=left)


def as_resources(held: Held) -> Resources:
    """For a runtime, which can put them back as well; without the scores, which are each process's own."""
    if held.v2:
        return Resources(unified={posixpath.basename(path): text for path, text in held.files.items()})
    by_name = {posixpath.basename(path): text for path, text in held.files.items()}
    return Resources(
        cpu_shares=_number(by_name.get("cpu.shares")),
        cpu_quota_us=_number(by_name.get("cpu.cfs_quota_us")),
        cpu_period_us=_number(by_name.get("cpu.cfs_period_us")),
        cpuset_cpus=by_name.get("cpuset.cpus", ""),
        cpuset_mems=by_name.get("cpuset.mems", ""),
        memory_limit_bytes=_number(by_name.get("memory.limit_in_bytes")),
        memory_swap_limit_bytes=_number(by_name.get("memory.memsw.limit_in_bytes")),
        hugepage_limits=tuple(
            HugepageLimit(page_size=name.split(".")[1], limit_bytes=_number(text))
            for name, text in by_name.items()
            if name.startswith("hugetlb.")
        ),
    )


def _number(text: str | None) -> int:
    """0, "not specified", where there is no such file."""
    if text is None:
        return 0
    value = number(text.encode())
    return NO_LIMIT if value is None or value >= UNLIMITED else value


def check_room(cgroups: Mapping[str, str], wanted: Resources) -> None:
    """FailedPrecondition for a memory limit below the anonymous memory in use: v1 refuses it by itself, but v2 kills
    for it (cgroup-v2.rst, memory.max)."""
    if "memory" in cgroups or UNIFIED not in cgroups or wanted.memory_limit_bytes <= 0:
        return
    used = pairs((_read(f"{cgroups[UNIFIED]}/memory.stat") or "").encode()).get(b"anon", 0)
    if used > wanted.memory_limit_bytes:
        raise FailedPrecondition(
            f"linux.memory_limit_in_bytes: {wanted.memory_limit_bytes} is below the {used} bytes in use"
        )


def set_oom_score(pid: int, score: int) -> bool:
    """Of one process (proc(5), oom_score_adj); false where it has ended or the kernel refuses."""
    return _write(f"/proc/{pid}/oom_score_adj", str(score))


def _oom_score(pid: int) -> int | None:
    text = _read(f"/proc/{pid}/oom_score_adj")
    return int(text) if text and text.lstrip("-").isdigit() else None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _write(path: str, text: str) -> bool:
    try:
        Path(path).write_text(text)
    except OSError:
        return False
    return True
