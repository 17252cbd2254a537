"""Processes that are not our children: told apart from later ones with the same number, awaited, signalled.

A process is named by its number and its start time (clock ticks since boot, proc(5)); all that happens to it goes
through a pidfd, which can never mean another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Final

from isulad_py.host.failures import translate

FIRST_LOOK_SECONDS: Final = 0.0005
LONGEST_LOOK_SECONDS: Final = 0.02

_STATE: Final = 0
_SESSION: Final = 3
_FLAGS: Final = 6
_START_TIME: Final = 19
"""Positions in /proc/<pid>/stat behind the command's name, which may itself hold blanks and brackets."""

_FORKED_ONLY: Final = 0x40
"""PF_FORKNOEXEC (include/linux/sched.h)."""
_ENDED: Final = frozenset({b"Z", b"X", b"x"})


def start_time(pid: int) -> int:
    """Ticks after boot at which the process started; 0 where there is none, or only a zombie."""
    fields = _stat(pid)
    if not fields or fields[_STATE] in _ENDED:
        return 0
    return int(fields[_START_TIME])


def zombie_since(pid: int) -> int:
    """Start time of a process that has ended and is not reaped; 0 for any other."""
    fields = _stat(pid)
    return int(fields[_START_TIME]) if fields and fields[_STATE] in _ENDED else 0


def session(pid: int) -> int:
    """Number of the process that leads its session; 0 where there is none."""
    fields = _stat(pid)
    return int(fields[_SESSION]) if fields else 0


def runs_its_parents_program(pid: int, started: int) -> bool:
    """Whether it was forked and has executed no program since; false where it has ended."""
    fields = _stat(pid)
    return alive(pid, started) and bool(fields) and bool(int(fields[_FLAGS]) & _FORKED_ONLY)


def _stat(pid: int) -> list[bytes]:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text[text.rindex(b")") + 2 :].split()


def alive(pid: int, started: int) -> bool:
    """Whether exactly this process still runs; a zombie does not."""
    return pid > 0 and started > 0 and start_time(pid) == started


def _open(pid: int, started: int) -> int:
    """A pidfd, or -1 where the process has ended. The start time is read behind the opening: had the number been given
    to another process by then, the time would differ."""
    if pid <= 0 or started <= 0:
        return -1
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
    except OSError as error:
        if error.errno == errno.EINVAL:  # before Linux 6.15: it has ended, and others are still in its group or session
            return -1
        raise translate(f"open process {pid}", error) from error
    if start_time(pid) == started:
        return fd
    os.close(fd)
    return -1


def send(pid: int, started: int, number: int) -> bool:
    """Sends a signal; false where the process has ended."""
    fd = _open(pid, started)
    if fd < 0:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    except OSError as error:
        raise translate(f"signal process {pid}", error) from error
    finally:
        os.close(fd)
    return True


async def wait_end(pid: int, started: int) -> None:
    """Returns when the process has ended; at once if it has. An orphan that was left to us is reaped."""
    await _until_end(pid, started)
    reap(pid, started)


def reap(pid: int, started: int) -> None:
    """Takes a zombie away where it has become our child (see `adopted`)."""
    fields = _stat(pid) if pid > 0 else []
    if fields and fields[_STATE] in _ENDED and int(fields[_START_TIME]) == started:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)


async def wait_program(pid: int, started: int) -> None:
    """Returns when a process that was forked has executed a program, or has ended. The kernel tells nobody, so this
    looks again, soon at first: each start of a container waits here."""
    pause = FIRST_LOOK_SECONDS
    while runs_its_parents_program(pid, started):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await _until_end(pid, started)
        pause = min(2 * pause, LONGEST_LOOK_SECONDS)


async def _until_end(pid: int, started: int) -> None:
    fd = _open(pid, started)
    if fd < 0:
        return
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def on_end() -> None:
        loop.remove_reader(fd)
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(fd, on_end)
    try:
        await ended
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, as of now. One whose parent has ended belongs to another."""
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children(todo.pop())
        found += below
        todo += below
    return found


def children(pid: int) -> list[int]:
    """Of all its threads, zombies included."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_bytes().split())
    return found


def stop_descendants(pid: int) -> dict[int, int]:
    """Halts everything below a process, so that nothing can be born or change its parent any more; start time by
    number."""
    halted: dict[int, int] = {}
    while True:
        fresh = {child: start_time(child) for child in descendants(pid) if child not in halted}
        halted |= fresh
        sent = [send(child, started, signal.SIGSTOP) for child, started in fresh.items()]
        if not any(sent):
            return halted


def find_by_arguments(arguments: Collection[str]) -> dict[int, int]:
    """Start time by number of the processes whose command line has all of these arguments. Reads all of /proc."""
    wanted = {argument.encode() for argument in arguments}
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if wanted <= set((entry / "cmdline").read_bytes().split(b"\0")):
                pid = int(entry.name)
                found[pid] = start_time(pid)
    return found
