"""Limits of this process."""

from __future__ import annotations

import resource
from typing import Final

OPEN_FILES: Final = 1_048_576
"""As iSulad: sockets, pidfds, logs and pipes of thousands of containers."""


def raise_open_files(wanted: int = OPEN_FILES) -> int:
    """Raises the limit of open files as far as we may; without CAP_SYS_RESOURCE up to the hard limit. Returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    for target in (wanted, hard):
        limits = (target, max(target, hard)) if hard != resource.RLIM_INFINITY else (target, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        except (OSError, ValueError):
            continue
        return target
    return soft
