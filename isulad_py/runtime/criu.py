"""CRIU, by which OCI runtimes write a container's state to disk and make it run again (criu(8))."""

from __future__ import annotations

import shutil
from typing import Final

from isulad_py.host import process
from isulad_py.model.errors import EngineError
from isulad_py.ports.runtime import HandlerFeatures

CHECK_SECONDS: Final = 10.0
WORDS_LIMIT: Final = 300


async def obstacle(features: HandlerFeatures, *, program: str = "criu") -> str:
    """As ports.runtime.ContainerRuntime.checkpoint_obstacle. Asked anew each time: it can be installed meanwhile."""
    if not features.checkpoint:
        return f"runtime {features.name} is built without CRIU"
    path = shutil.which(program, path=process.PATH)
    if path is None:
        return f"{program} is not installed"
    try:
        done = await process.run(process.Command(argv=(path, "check"), timeout_seconds=CHECK_SECONDS))
    except EngineError as error:
        return str(error)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        return f"{program} does not work on this kernel: {words[0][-WORDS_LIMIT:]}"
    return ""
