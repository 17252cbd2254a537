"""Pulls of one image: a floor, the tools skopeo and umoci where they are installed, and engines, in turns.

Beside the time of each: CPU seconds, and how much memory it took more than before.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.clock import Samples
from bench.engine import Engine
from bench.fetch import fetch_and_unpack
from tests.images import ImageLayer

PULL, CPU, EXTRA = "pull", "CPU", "extra memory, MiB"
"""What is noted of each: milliseconds, milliseconds, MiB."""
TOOLS: Final = "skopeo, umoci"
_TICK_MS: Final = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class PullPlace:
    """Where floors pull from and to."""

    host: str
    repository: str
    tag: str
    layers: list[ImageLayer]
    folder: Path
    """On the disk that the engines keep their images on."""


def has_tools() -> bool:
    return bool(shutil.which("skopeo") and shutil.which("umoci"))


def pull_floor(place: PullPlace, samples: Samples) -> None:
    """All layers at once, each verified and unpacked by tar, then written out to the disk. Leaves nothing."""
    folder = place.folder / "fetched"
    folder.mkdir()
    try:
        before = _own_cpu_ms()
        with samples.timed(PULL):
            fetch_and_unpack(place.host, place.repository, place.layers, folder)
            sync_filesystem(folder)
        samples.add(CPU, _own_cpu_ms() - before)
    finally:
        shutil.rmtree(folder)


def pull_with_tools(place: PullPlace, samples: Samples) -> None:
    """What an operator would do without an engine. Leaves nothing."""
    folder = place.folder / "tools"
    folder.mkdir()
    source = f"docker://{place.host}/{place.repository}:{place.tag}"
    steps = (
        ("skopeo", "copy", "--quiet", "--src-tls-verify=false", source, f"oci:{folder}/oci:{place.tag}"),
        ("umoci", "unpack", "--image", f"{folder}/oci:{place.tag}", f"{folder}/bundle"),
    )
    try:
        used = []
        with samples.timed(PULL):
            used += [_run(step) for step in steps]
            sync_filesystem(folder)
        samples.add(CPU, sum(usage.ru_utime + usage.ru_stime for usage in used) * 1000)
        samples.add(EXTRA, max(usage.ru_maxrss for usage in used) / 1024)
    finally:
        shutil.rmtree(folder)


def pull_by_engine(engine: Engine, samples: Samples) -> None:
    with _watched(engine.pid, samples), samples.timed(PULL):
        engine.pull(engine.pull_image)
    with samples.timed("RemoveImage"):
        engine.remove_image(engine.pull_image)


def sync_filesystem(folder: Path) -> None:
    """syncfs(2): an engine's image must survive a power cut, so a floor's must."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise OSError(ctypes.get_errno(), "syncfs", str(folder))
    finally:
        os.close(descriptor)


@contextmanager
def _watched(pid: int, samples: Samples) -> Iterator[None]:
    """CPU time of a process and its children, and its peak of resident memory over what it had before: the kernel
    forgets the former peak when 5 is written to clear_refs (proc(5))."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    memory, cpu = _status_kib(pid, "VmRSS"), process_cpu_ms(pid)
    yield
    samples.add(CPU, process_cpu_ms(pid) - cpu)
    samples.add(EXTRA, (_status_kib(pid, "VmHWM") - memory) / 1024)


def process_cpu_ms(pid: int) -> float:
    """Its own, and that of its children that have ended (proc_pid_stat(5): utime, stime, cutime, cstime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * _TICK_MS


def _status_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    raise OSError(f"/proc/{pid}/status tells no {name}")


def _own_cpu_ms() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used) * 1000


def _run(command: tuple[str, ...]) -> resource.struct_rusage:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise OSError(f"{command[0]} ends with {process.returncode}")
    return usage
