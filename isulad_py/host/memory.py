"""The process's own memory: glibc's allocator (for objects over 512 bytes, and every library) and the collector."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def tune_allocator() -> None:
    """Few arenas and early return of free memory. Each thread would else get an arena of its own, which never shrinks.

    Does nothing where the C library has no mallopt.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 2)
        libc.mallopt(_M_TRIM_THRESHOLD, 128 * 1024)
        libc.mallopt(_M_MMAP_THRESHOLD, 256 * 1024)


def settle() -> None:
    """After the start: what is alive now stays, so the collector need not look at it again; what is free goes back.

    Measured: 1.5 MB less, and full collections of a fraction of a millisecond instead of some twenty.
    """
    gc.collect()
    gc.freeze()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
