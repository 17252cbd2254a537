"""What bears a stand's mark on this machine; the last word on whether anything was left behind.

Others work on the same machine, so comparing whole lists from before and after would accuse the wrong ones: counts of
everything are given for information, only what bears the mark is a leftover.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.stand.cgroups import cgroups_named, processes_in, remove_cgroup
from tests.stand.disk import mounts_below, unmount_below
from tests.stand.mark import Mark, run


@dataclass(frozen=True)
class Counts:
    """Of the whole machine."""

    mounts: int
    network_namespaces: int
    processes: int
    cgroups: int
    links: int

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) - getattr(other, name) for name in self.__dataclass_fields__))


def count() -> Counts:
    mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    namespaces = {line.split(" ")[3] for line in mountinfo if " - nsfs " in line and " net:[" in line}
    pids = process_ids()
    for pid in pids:
        with contextlib.suppress(OSError):
            namespaces.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return Counts(len(mountinfo), len(namespaces), len(pids), len(cgroups_named("", depth=1)), len(links()))


def process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def links() -> list[str]:
    return sorted(entry.name for entry in Path("/sys/class/net").iterdir())


def find_leftovers(mark: Mark, *, folder_too: bool = True) -> list[str]:
    """One line for each thing that bears the mark; the folder is left out where it is still wanted."""
    found = [f"process {pid}: {command}" for pid, command in marked_processes(mark).items()]
    found += [f"mount {point}" for point in mounts_below(mark.root)]
    found += [f"loop device {device}" for device in _loop_devices(mark)]
    found += [f"link {name}" for name in links() if mark.word in name]
    found += [f"cgroup {path}" for path in cgroups_named(mark.word)]
    found += [f"packet filter rule {rule}" for rule in _rules(mark)]
    if folder_too and mark.root.exists():
        found.append(f"folder {mark.root}")
    return found


def marked_processes(mark: Mark) -> dict[int, str]:
    """Processes with the mark in their command line or their cgroup, ourselves and our parents left out."""
    ours = set()
    pid = os.getpid()
    while pid > 1:
        ours.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    inside = set().union(*(processes_in(folder) for folder in cgroups_named(mark.word)))
    found = {}
    for pid in process_ids():
        if pid in ours:
            continue
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if mark.word in command or pid in inside:
                found[pid] = command[:100]
    return found


def _loop_devices(mark: Mark) -> list[str]:
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if backing.read_text(encoding="utf-8").startswith(str(mark.root)):
                found.append(f"/dev/{backing.parts[3]}")
    return found


def _rules(mark: Mark, table: str = "nat") -> list[str]:
    if not (save := shutil.which("iptables-save", path="/usr/sbin:/sbin:/usr/bin:/bin")):
        return []
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return [line for line in run([save, "-t", table], seconds=20).splitlines() if mark.word in line]
    return []


def clear(mark: Mark) -> None:
    """Take away by force whatever bears the mark, the folder last; for when the orderly way failed or was cut short."""
    for pid in marked_processes(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    unmount_below(mark.root)
    for device in _loop_devices(mark):
        run(["losetup", "--detach", device], check=False)
    for name in links():
        if mark.word in name:
            run(["ip", "link", "delete", name], check=False)
    for folder in cgroups_named(mark.word):
        remove_cgroup(folder)
    _clear_rules(mark)
    if not mounts_below(mark.root):
        shutil.rmtree(mark.root, ignore_errors=True)


def _clear_rules(mark: Mark) -> None:
    """The bridge plugin's masquerading: one rule that names the network and jumps to a chain of the pod's own."""
    for rule in _rules(mark):
        words = shlex.split(rule)
        if words[:2] == ["-A", "POSTROUTING"]:
            run(["iptables", "-w", "-t", "nat", "-D", *words[1:]], check=False)
    for chain in {shlex.split(rule)[1] for rule in _rules(mark) if rule.startswith("-A CNI-")}:
        run(["iptables", "-w", "-t", "nat", "-F", chain], check=False)
        run(["iptables", "-w", "-t", "nat", "-X", chain], check=False)
