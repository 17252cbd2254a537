"""The kernel's log (Documentation/ABI/testing/dev-kmsg): what it has told of cgroups that are gone by now."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

KMSG: Final = "/dev/kmsg"
RECORD_BYTES: Final = 8192
"""The longest record; a shorter read fails."""
RECORDS: Final = 100_000
"""More than the log of any usual kernel has: a flood that comes as fast as it is read ends here."""

_KILL: Final = re.compile(rb"^[0-7],[^;\n]*;oom-kill:.*?,task_memcg=([^,\n]*)", re.MULTILINE)
"""Of the kernel's own facility, whose priorities are below 8: what programs write has others."""


def cgroups_short_of_memory(path: str = KMSG) -> frozenset[str]:
    """Paths, below the root of the hierarchy, of the cgroups of processes that the kernel killed for memory since the
    oldest record there is. Blocks for some milliseconds.

    Not all of them: the kernel tells of ten in five seconds, and forgets. None at all where the log may not be read, as
    in a container without CAP_SYSLOG.
    """
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return frozenset()
    try:
        return frozenset(found for record in _records(log) for found in _killed(record))
    finally:
        os.close(log)


def _records(log: int) -> Iterator[bytes]:
    for _ in range(RECORDS):
        try:
            record = os.read(log, RECORD_BYTES)
        except BrokenPipeError:  # the next one was overwritten: the one after it comes with the next read
            continue
        except OSError:  # EAGAIN at the end
            return
        if not record:
            return
        yield record


def _killed(record: bytes) -> list[str]:
    return [path.decode(errors="replace") for path in _KILL.findall(record)]
