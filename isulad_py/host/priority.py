"""The daemon's share of a busy machine: before ordinary programs, so that a start of many pods does not keep the loop
from its sockets. All threads alike: one that holds the interpreter lock and does not get to run would stop the loop."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

NICE: Final = -10
SWITCH_SECONDS: Final = 0.0005
"""After how long a thread that computes hands the interpreter lock to the loop (Python's own: 5 ms)."""


def prefer_this_process(nice: int = NICE) -> bool:
    """For the calling thread and those that it starts from here on. Returns false where that is not allowed."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        return True
    return False


def start_programs_ordinarily() -> None:
    """Programs that the calling thread starts have the ordinary priority (sched(7), SCHED_RESET_ON_FORK)."""
    reset = getattr(os, "SCHED_RESET_ON_FORK", 0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER | reset, os.sched_param(0))
