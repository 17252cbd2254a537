"""Names of block devices, and what a file system has. Synchronous."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from isulad_py.host.failures import translated

_NAME: Final = re.compile(r"^DEVNAME=(\S+)$", re.MULTILINE)


def name_of(major: int, minor: int, *, sysfs: str = "/sys") -> str:
    """As in /dev (sysfs, dev/block); `major:minor` for one that sysfs does not know."""
    try:
        found = _NAME.search(Path(f"{sysfs}/dev/block/{major}:{minor}/uevent").read_text())
    except OSError:
        found = None
    return f"/dev/{found[1]}" if found else f"{major}:{minor}"


def device_under(path: str) -> str:
    """The device, or else the source, of the file system that `path` is on."""
    major, minor = numbers_under(path)
    name = name_of(major, minor)
    return name if name.startswith("/") else _source(f"{major}:{minor}")


def numbers_under(path: str) -> tuple[int, int]:
    """Major and minor number of the file system that `path` is on."""
    with translated("look at the file system of"):
        number = Path(path).stat().st_dev
    return os.major(number), os.minor(number)


def _source(device: str) -> str:
    """Of a mount with that device (proc(5), mountinfo): file systems of several disks have one without a name."""
    try:
        with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="replace") as table:
            for line in table:
                left, _, right = line.partition(" - ")
                if left.split()[2] == device:
                    return right.split()[1]
    except (OSError, IndexError):
        return device
    return device


def size_of(path: str) -> int:
    """Bytes of the whole file system that `path` is on (statvfs(3))."""
    with translated("look at the file system of"):
        found = os.statvfs(path)
    return found.f_blocks * found.f_frsize
