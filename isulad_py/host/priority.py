"""The loop's share of a busy machine."""

from __future__ import annotations

import contextlib
import os
from typing import Final

NICE: Final = -10


def prefer_this_thread(nice: int = NICE) -> bool:
    """Lets the calling thread run before ordinary ones: a start of many pods must not keep the loop from its sockets.

    Threads and programs that are started from here on begin at the ordinary priority again (sched(7),
    SCHED_RESET_ON_FORK). Returns false where that is not allowed.
    """
    reset = getattr(os, "SCHED_RESET_ON_FORK", 0)
    if not reset:
        return False
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER | reset, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        return True
    return False
