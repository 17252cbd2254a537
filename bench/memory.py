"""Proportional memory (PSS) of an engine: the daemon behind its socket, and the monitors that it keeps."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    daemon: int
    monitors: int
    monitor_count: int

    @property
    def total(self) -> int:
        return self.daemon + self.monitors

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "total": self.total}


def daemon_pid(path: Path) -> int:
    """The process that listens: the kernel notes it when the socket starts to listen (unix(7), SO_PEERCRED)."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
        pid, _uid, _gid = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


def pss(pid: int) -> int:
    """Zero for a process that is gone."""
    with contextlib.suppress(OSError):
        found = re.search(
            r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii"), re.MULTILINE
        )
        return int(found.group(1)) * 1024 if found else 0
    return 0


def _processes() -> dict[int, tuple[int, str, str]]:
    """Parent, short name and command line of each process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                name, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(folder.name)] = (int(rest.split()[1]), name.partition("(")[2], command)
    return found


def measure(daemon: int, ids: Iterable[str]) -> Memory:
    """Monitors are the daemon's children, and processes with a pod's or container's id in their command line.

    A monitor leaves its parent, so the second way finds what the first does not; what runs inside a container has no
    id in its command line.
    """
    wanted = re.compile("|".join(map(re.escape, ids)) or r"(?!)")
    monitors = []
    for pid, (parent, name, command) in _processes().items():
        if pid != daemon and (parent == daemon or (not name.startswith("runc") and wanted.search(command))):
            monitors.append(pid)
    return Memory(pss(daemon), sum(map(pss, monitors)), len(monitors))
