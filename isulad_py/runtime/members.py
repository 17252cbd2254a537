"""The processes of a container, told by its cgroups: listed, ended, held and let go; the cgroups themselves removed.

Synchronous; callers on the loop go through `host.blocking`: the kernel lets who moves a process wait for a grace
period (about 10 ms).
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from isulad_py.host import pidfd

UNIFIED: Final = "unified"
"""Key of the cgroup2 directory, as in `HostFacts.cgroup_mounts`."""
_LISTING_ORDER: Final = ("freezer", "pids", "memory", "devices", "name=systemd", UNIFIED)
"""Whose list of processes is taken: all hierarchies hold the same ones, and freezer is where execs get their own."""


def parse_membership(text: bytes, mounts: Mapping[str, str]) -> dict[str, str]:
    """Directory by controller, from /proc/<pid>/cgroup (cgroups(7)) and the mount points."""
    found: dict[str, str] = {}
    for line in text.decode(errors="surrogateescape").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for key in [UNIFIED] if number == "0" else names.split(","):
            if key in mounts and path.startswith("/"):
                found[key] = mounts[key] + path.rstrip("/")
    return found


def read_membership(pid: int, mounts: Mapping[str, str]) -> dict[str, str]:
    """As `parse_membership`; empty where the process has ended."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_bytes()
    except OSError:
        return {}
    return parse_membership(text, mounts)


def in_side_tree(pid: int, mounts: Mapping[str, str]) -> dict[str, str]:
    """As `read_membership`, of a process that is then in its place of a cgroup2 tree beside those of v1: runc puts it
    there, crun leaves it outside. Where the kernel refuses, it stays outside."""
    found = read_membership(pid, mounts)
    first = next((key for key in _LISTING_ORDER if key in found and key != UNIFIED), "")
    if first and UNIFIED in found:
        wanted = mounts[UNIFIED] + found[first].removeprefix(mounts[first])
        if wanted != found[UNIFIED]:
            with contextlib.suppress(OSError):
                Path(wanted).mkdir(parents=True, exist_ok=True)
            if not join(pid, [wanted]):
                found[UNIFIED] = wanted
    return found


def listing(cgroups: Mapping[str, str]) -> str:
    """The directory that tells all processes; empty where there is none."""
    return next((cgroups[key] for key in _LISTING_ORDER if key in cgroups), "")


def processes(directory: str) -> set[int]:
    """Of the cgroup and all below it; none where it is gone. Zombies are not listed."""
    pids: set[int] = set()
    if directory:
        for path, _, _ in os.walk(directory):
            with contextlib.suppress(OSError):
                pids |= set(map(int, Path(path, "cgroup.procs").read_bytes().split()))
    return pids


def signal_all(directory: str, number: int) -> dict[int, int]:
    """Signals every process in the cgroup; start time by number of those there were. A number that was given to another
    process between two looks is not in the second one."""
    first = {pid: pidfd.start_time(pid) for pid in processes(directory)}
    return {pid: first[pid] for pid in processes(directory) if pid in first and pidfd.send(pid, first[pid], number)}


def kill_all(directory: str) -> dict[int, int]:
    """Kills what is in the cgroup; start time by number of those there were, and nothing done where there are none."""
    found = {pid: pidfd.start_time(pid) for pid in processes(directory)}
    if not found:
        return {}
    if Path(directory, "cgroup.kill").exists():
        _write(directory, "cgroup.kill", "1")
        return found
    # Held still meanwhile, so that none can be born between the look and the signal.
    _write(directory, "freezer.state", "FROZEN")
    try:
        return signal_all(directory, signal.SIGKILL)
    finally:
        thaw({"freezer": directory})


def frozen(cgroups: Mapping[str, str]) -> bool:
    if "freezer" in cgroups:
        return _read(cgroups["freezer"], "freezer.state") in {b"FROZEN", b"FREEZING"}
    return UNIFIED in cgroups and _read(cgroups[UNIFIED], "cgroup.freeze") == b"1"


def thaw(cgroups: Mapping[str, str]) -> None:
    """On v1 a frozen process dies of SIGKILL only once it is thawed; v2 needs no such help (cgroup-v2.rst, Freezer).

    Those below as well: a daemon that died while it ended an exec leaves them held.
    """
    for path, _, _ in os.walk(cgroups.get("freezer", "")):
        _write(path, "freezer.state", "THAWED")


def oom_kills(cgroups: Mapping[str, str]) -> int | None:
    """How often the kernel killed a process of this cgroup for memory; None where that cannot be told.

    On v1 the eventfd, which the monitor listens to, fires for an ancestor's shortage too; this counter does not.
    """
    if "memory" in cgroups:
        return _counter(_read(cgroups["memory"], "memory.oom_control"), b"oom_kill")
    if UNIFIED in cgroups:
        return _counter(_read(cgroups[UNIFIED], "memory.events"), b"oom_kill")
    return None


def _counter(text: bytes, name: bytes) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(b" ")
        if key == name and value.isdigit():
            return int(value)
    return None


def memory_and_swap_limit(cgroups: Mapping[str, str]) -> int | None:
    """A v1 cgroup's limit for memory and swap together; None on v2 and where swap is not accounted."""
    if "memory" not in cgroups:
        return None
    value = _read(cgroups["memory"], "memory.memsw.limit_in_bytes")
    return int(value) if value.isdigit() else None


def remove(directory: str) -> bool:
    """Removes an empty cgroup and the empty ones below it; whether it is gone."""
    for path, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    return not Path(directory).exists()


def join(pid: int, directories: Iterable[str]) -> list[OSError]:
    """Moves a process into each cgroup; what the kernel refused."""
    refused: list[OSError] = []
    for directory in directories:
        try:
            Path(directory, "cgroup.procs").write_text(str(pid))
        except OSError as error:
            refused.append(error)
    return refused


class ExecGroup:
    """A cgroup below the container's own for the processes of one exec.

    It is what tells them from the container's others: a process that was orphaned, or has made itself a session of its
    own, has no other trace of its origin. It costs 0.1 ms, and a process cannot leave it by itself.
    """

    def __init__(self, parent: str, name: str, argument: str = "", *, entered_first: bool = False) -> None:
        self.name = name
        self._parent = parent
        self._path = f"{parent}/{name}"
        self.argument = argument
        """For the runtime's `exec --cgroup`; empty where it is not to be asked."""
        self.door = f"{self._path}/cgroup.procs" if entered_first else ""
        """The runtime has to be started inside, by writing itself into this file. Where there is neither this nor an
        argument, `take_in` has to do."""

    @classmethod
    def below(cls, cgroups: Mapping[str, str], family: str, name: str) -> ExecGroup | None:
        """None where there is no place for one. On v1, where it is of one controller only, crun is not asked: it leaves
        the process outside the container's cgroups of all others. In a cgroup2 tree beside them, which it does not know
        of, all that it starts stays where it is itself."""
        if "freezer" in cgroups:
            side, freezer = cgroups.get(UNIFIED, ""), cgroups["freezer"]
            if family == "crun" and posixpath.basename(side) == posixpath.basename(freezer):
                return cls(side, name, entered_first=True)
            return cls(cgroups["freezer"], name, f"freezer:{name}" if family == "runc" else "")
        if UNIFIED in cgroups and len(cgroups) == 1:
            return cls(cgroups[UNIFIED], name, name if family in {"runc", "crun"} else "")
        return None

    @classmethod
    def found(cls, cgroups: Mapping[str, str], container_id: str, prefix: str) -> list[ExecGroup]:
        """Those that are there, directly below the container's own cgroups."""
        parents = {cgroups[key] for key in ("freezer", UNIFIED) if key in cgroups}
        own = [parent for parent in parents if container_id in posixpath.basename(parent)]
        return [cls(parent, path.name) for parent in own for path in Path(parent).glob(f"{prefix}*/")]

    def processes(self) -> set[int]:
        return processes(self._path)

    def take_in(self, pid: int) -> None:
        """Moves a command, all below it and all of its session in, a moment after its start: only what has left both
        by then stays outside."""
        inside: set[int] = set()
        leader = pidfd.session(pid)
        shared = leader == pidfd.session(os.getpid())
        while pidfd.start_time(pid):
            others = () if shared else processes(self._parent)
            session = {other for other in others if pidfd.session(other) == leader}
            fresh = {pid, *pidfd.descendants(pid), *session} - inside
            if not fresh:
                return
            for process in fresh:
                _write(self._path, "cgroup.procs", str(process))
            inside |= fresh

    def make(self) -> bool:
        """False where the kernel refuses: then the command runs without."""
        try:
            Path(self._path).mkdir()
        except OSError:
            return False
        return True

    def kill(self) -> dict[int, int]:
        """Kills what is in it; start time by number of those there were."""
        return kill_all(self._path)

    def dissolve(self) -> None:
        """Removes it; what still runs, and may, goes back to the container's own cgroup."""
        for _ in range(8):
            if remove(self._path):
                return
            for pid in processes(self._path):
                _write(self._parent, "cgroup.procs", str(pid))


def _read(directory: str, name: str) -> bytes:
    try:
        return Path(directory, name).read_bytes().strip()
    except OSError:
        return b""


def _write(directory: str, name: str, value: str) -> None:
    with contextlib.suppress(OSError):
        Path(directory, name).write_text(value)
