"""Making the next move of a process into a cgroup a quick one.

The kernel lets forks and exits run without a lock until somebody moves a process; the first move after an idle while
has to wait for a grace period of RCU (9-11 ms measured), moves right after it do not (percpu_rw_semaphore). A runtime
moves its process some 20 ms after its start: a move of our own in the meantime, from our cgroup into our cgroup, takes
the wait away from it (`runc create`: 36 ms to 28, side by side on one machine).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from isulad_py.host import blocking


class CgroupMoves:
    """Nothing depends on it: where it cannot be done, starts take the time that they take."""

    def __init__(self, cgroup_mounts: Mapping[str, str]) -> None:
        """`cgroup_mounts` as in model.facts.HostFacts."""
        self._path = _own_processes(cgroup_mounts)
        self._moving: asyncio.Future[None] | None = None

    def warm(self) -> None:
        """To be called when a runtime is about to be started; returns at once."""
        if self._path and (self._moving is None or self._moving.done()):
            self._moving = asyncio.ensure_future(blocking.run(self._move))

    def _move(self) -> None:
        with contextlib.suppress(OSError), open(self._path, "wb", buffering=0) as file:  # noqa: PTH123 - unbuffered
            file.write(str(os.getpid()).encode())


def _own_processes(cgroup_mounts: Mapping[str, str]) -> str:
    """The file through which we would be moved into the cgroup where we are; empty where it cannot be told."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            for name in controllers.split(",") if controllers else ("unified",):
                file = f"{cgroup_mounts.get(name, '')}{path.rstrip('/')}/cgroup.procs"
                if name in cgroup_mounts and os.access(file, os.W_OK):
                    return file
    return ""
