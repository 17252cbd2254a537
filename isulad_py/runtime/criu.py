"""CRIU, by which OCI runtimes write a container's state to disk and make it run again (criu(8)).

Runtimes start it by its name, through the PATH that they have: `environment` puts the configured one first.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections import deque
from pathlib import Path
from typing import Final

from isulad_py.host import process
from isulad_py.model.errors import EngineError, FailedPrecondition
from isulad_py.ports.runtime import HandlerFeatures

CHECK_SECONDS: Final = 10.0
WORDS_LIMIT: Final = 300
LOG_TAIL_BYTES: Final = 256 * 1024
LOG_LINES: Final = 3
_ERROR: Final = re.compile(r"^(?:\([\d.]+\)\s*)?(?:pie: )?\s*(?:\d+: )?Error \([^)]*\):\s*(.*)$")


async def obstacle(features: HandlerFeatures, *, program: str = "criu") -> str:
    """As ports.checkpoints.Checkpointer.obstacle. Asked anew each time: it can be installed meanwhile."""
    if not features.checkpoint:
        return f"runtime {features.name} is built without CRIU"
    if not program:
        return "checkpoints are turned off (criu)"
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


def environment(program: str) -> dict[str, str]:
    """What a runtime is started with so that it finds this CRIU."""
    folder = posixpath.dirname(program)
    return {"PATH": f"{folder}:{process.PATH}"} if folder else {}


def explained(error: EngineError, log: str) -> EngineError:
    """FailedPrecondition with the last errors of CRIU's log at that path; the same error where it tells none."""
    words = last_errors(log)
    return FailedPrecondition(f"{error}; CRIU: {words}") if words else error


def last_errors(log: str) -> str:
    """Of the end of a log, bounded; empty where there is none."""
    try:
        with Path(log).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            lines = file.read(LOG_TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    found = deque((match[1].strip() for line in lines if (match := _ERROR.match(line))), maxlen=LOG_LINES)
    return "; ".join(words[:WORDS_LIMIT] for words in found)
