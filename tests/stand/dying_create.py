"""A daemon that is killed while it creates a container: `dying_create.py <state> <rootfs> <cgroup> <id> <step>`.

Step `place` kills it when the monitor waits to be let go; a number, so many milliseconds after the start of create.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId
from isulad_py.ports.runtime import Launch
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.stand.rootfs import spec


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingRuntime(OciRuntime):
    async def _place(self, launch: Launch, groups: list[str], pid: int) -> None:
        print(pid, flush=True)
        die()


async def create() -> None:
    state, root, cgroup, container_id, step = sys.argv[1:]
    kind = DyingRuntime if step == "place" else OciRuntime
    runtime = kind(
        handlers={"runc": RuntimeHandler(name="runc", systemd_cgroup=":" in cgroup)},
        facts=read_facts(),
        clock=SystemClock(),
        options=Options(state=state),
    )
    await runtime.versions()
    document = spec(("sleep", "1000000"), root=Path(root), cgroup=cgroup)
    if step != "place":
        threading.Timer(int(step) / 1000, die).start()
    await runtime.create(Launch(id=ContainerId(container_id), handler="runc", spec=document))
    time.sleep(10)


if __name__ == "__main__":
    asyncio.run(create())
