"""The typed form of `storage-opts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isulad_py.config.values import size_bytes

SIZE_OPTIONS: Final = ("overlay2.size", "overlay2.basesize")
"""Two names of one thing, as in iSulad: what each container may write."""
SMALLEST_BYTES: Final = 4096


def container_size_bytes(options: Iterable[str]) -> int:
    """What each container may write into its root file system; 0 is no bound. Raises ValueError."""
    found: dict[str, int] = {}
    for option in options:
        name, _, text = option.partition("=")
        if name not in SIZE_OPTIONS:
            continue
        size = size_bytes(text)
        if 0 < size < SMALLEST_BYTES:
            raise ValueError(f"{name}: must be 0, or at least {SMALLEST_BYTES} bytes")
        found[name] = size
    if len(set(found.values())) > 1:
        raise ValueError(f"{' and '.join(found)} say different sizes")
    return max(found.values(), default=0)
