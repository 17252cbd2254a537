from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from isulad_py.host import confined, libc
from isulad_py.model.errors import FailedPrecondition, HostFailure, NotFound, ResourceExhausted


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(b"outside")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "passwd").write_bytes(b"inside")
    return root


def test_links_stay_inside(root: Path) -> None:
    (root / "absolute").symlink_to("/etc/passwd")
    (root / "climbing").symlink_to("../../../../etc/passwd")
    (root / "directory").symlink_to("/etc")
    for path in ("etc/passwd", "/etc/passwd", "absolute", "climbing", "directory/passwd", "../../etc/passwd"):
        assert confined.read_in_root(str(root), path, 100) == b"inside"


@pytest.mark.parametrize("link", ["../secret", "/secret", "/proc/self/root/etc/passwd"])
def test_what_is_outside_cannot_be_reached(root: Path, link: str) -> None:
    (root / "out").symlink_to(link)
    with pytest.raises(NotFound):
        confined.read_in_root(str(root), "out", 100)


def test_hostile_files_are_typed_errors(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(FailedPrecondition):
        confined.read_in_root(str(root), "loop", 100)
    os.mkfifo(root / "fifo")
    with pytest.raises(HostFailure, match="not a regular file"):
        confined.read_in_root(str(root), "fifo", 100)
    with pytest.raises(HostFailure, match="not a regular file"):
        confined.read_in_root(str(root), "etc", 100)
    with pytest.raises(ResourceExhausted):
        confined.read_in_root(str(root), "etc/passwd", 3)
    with pytest.raises(FailedPrecondition):
        confined.read_in_root(str(root), "etc/passwd/below", 100)
    with pytest.raises(FailedPrecondition):
        confined.read_in_root(str(root), "x" * 5000, 100)
    with pytest.raises(HostFailure):
        confined.read_in_root(str(root), "etc\0/passwd", 100)
    with pytest.raises(NotFound):
        confined.read_in_root(str(root / "absent"), "etc/passwd", 100)


def test_directories_are_made_inside_only(root: Path) -> None:
    (root / "work").symlink_to("/made/here")
    (root / "made" / "here").mkdir(parents=True)
    confined.mkdir_in_root(str(root), "/work/../here/./a//b", 0o750, os.getuid(), os.getgid())
    made = root / "made" / "here" / "a" / "b"
    assert stat.S_IMODE(made.stat().st_mode) == 0o750
    confined.mkdir_in_root(str(root), "/work/a/b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o750
    confined.mkdir_in_root(str(root), "/")


def test_what_is_in_the_way_is_refused(root: Path) -> None:
    (root / "dangling").symlink_to("/nowhere")
    with pytest.raises(FailedPrecondition, match="dangling"):
        confined.mkdir_in_root(str(root), "/dangling/below")
    with pytest.raises(FailedPrecondition, match="passwd"):
        confined.mkdir_in_root(str(root), "/etc/passwd")
    assert not (root / "nowhere").exists()


def test_renames_elsewhere_only_delay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """openat2 answers EAGAIN when anything on the machine is renamed while it resolves `..`."""
    (root / "up").symlink_to("etc/../etc/passwd")
    failures = iter(range(200))

    def busy(directory_fd: int, path: str, flags: int, *, mode: int = 0, resolve: int = 0) -> int:
        if next(failures, None) is not None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(directory_fd, path, flags, mode=mode, resolve=resolve)

    real = libc.openat2
    monkeypatch.setattr(libc, "openat2", busy)
    assert confined.read_in_root(str(root), "up", 100) == b"inside"
