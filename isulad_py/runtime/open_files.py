"""What processes have open, counted from /proc. Synchronous: for threads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

MOST: Final = 20_000
"""Descriptors of one container that are looked at: a count beyond it is at least this."""
_SOFT: Final = re.compile(rb"^Max open files +(\d+) ", re.MULTILINE)


class OpenFiles(Struct, frozen=True, kw_only=True):
    descriptors: int
    sockets: int


def count(pids: Iterable[int]) -> OpenFiles:
    """Of these processes together; one that has ended counts nothing."""
    descriptors = sockets = 0
    for pid in pids:
        for link in _links(pid):
            descriptors += 1
            sockets += link.startswith("socket:")
            if descriptors >= MOST:
                return OpenFiles(descriptors=descriptors, sockets=sockets)
    return OpenFiles(descriptors=descriptors, sockets=sockets)


def _links(pid: int) -> Iterable[str]:
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names, not paths
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{directory}/{name}")  # noqa: PTH115 - a name of the kernel's, not a path
        except OSError:
            continue


def soft_limit(pid: int) -> int | None:
    """The process's soft limit of open files; None where it has ended, or has no limit."""
    try:
        text = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError:
        return None
    found = _SOFT.search(text)
    return int(found[1]) if found else None
