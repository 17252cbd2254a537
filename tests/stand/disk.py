"""File systems for a stand: a journaled ext4 in a loop file for what lasts, a tmpfs for what does not.

An ext4 without a journal steps over recently deleted inodes one by one for minutes: a root file system of that kind
makes every engine look ten times slower at making files than it is. State folders are on a tmpfs on a normal node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stand.mark import Mark, find_program, run


@contextmanager
def journaled_disk(mark: Mark, name: str = "disk", *, size_mib: int = 4096) -> Iterator[Path]:
    """A folder on an ext4 of its own; the file behind it is sparse."""
    image = mark.root / f"{name}.ext4"
    target = mark.root / name
    with image.open("wb") as file:
        file.truncate(size_mib * 1024 * 1024)
    try:
        mkfs = find_program("mkfs.ext4")
        run(
            [
                mkfs,
                "-q",
                "-F",
                "-m",
                "0",
                "-O",
                "has_journal",
                "-E",
                "lazy_itable_init=1,lazy_journal_init=1",
                str(image),
            ]
        )
        target.mkdir()
        run(["mount", "-o", "loop,noatime", str(image), str(target)])
        try:
            yield target
        finally:
            unmount_below(target)
    finally:
        image.unlink(missing_ok=True)


class NoQuotasHere(Exception):
    """The kernel or a tool of this machine knows no project quotas."""


@contextmanager
def quota_disk(mark: Mark, kind: str) -> Iterator[Path]:
    """A folder on an ext4 or xfs of its own that keeps project quotas. Raises NoQuotasHere."""
    make = {
        "ext4": ["mkfs.ext4", "-q", "-F", "-O", "project,quota", "-E", "quotatype=prjquota"],
        "xfs": ["mkfs.xfs", "-q", "-f"],
    }[kind]
    image = mark.root / f"quota.{kind}"
    target = mark.root / f"quota-{kind}"
    with image.open("wb") as file:
        file.truncate(400 * 1024 * 1024)
    try:
        try:
            run([find_program(make[0]), *make[1:], str(image)])
            target.mkdir()
            run(["mount", "-o", "loop,prjquota", str(image), str(target)])
        except OSError as error:
            raise NoQuotasHere(f"{kind} with project quotas: {str(error).splitlines()[0]}") from error
        try:
            yield target
        finally:
            unmount_below(target)
    finally:
        image.unlink(missing_ok=True)


@contextmanager
def memory_disk(mark: Mark, name: str = "run") -> Iterator[Path]:
    target = mark.root / name
    target.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(target)])
    try:
        yield target
    finally:
        unmount_below(target)


def mounts_below(folder: Path) -> list[str]:
    """Mountpoints at and under the folder, the deepest first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        point = line.split(" ")[4].encode().decode("unicode_escape")
        if point == str(folder) or point.startswith(f"{folder}/"):
            found.append(point)
    return sorted(found, key=len, reverse=True)


def unmount_below(folder: Path) -> None:
    """Unmount everything at and under the folder; what is busy is detached."""
    for _ in range(3):
        points = mounts_below(folder)
        for point in points:
            run(["umount", "--lazy", point], check=False)
        if not points:
            return
