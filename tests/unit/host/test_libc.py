from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from isulad_py.host import libc


def test_errors_carry_number_and_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        libc.is_mount_root(str(tmp_path / "absent"))
    assert caught.value.filename == str(tmp_path / "absent")
    with pytest.raises(OSError, match="Bad file descriptor") as closed:
        libc.setns(-1, 0)
    assert closed.value.errno == errno.EBADF


def test_a_nul_never_reaches_the_kernel() -> None:
    with pytest.raises(OSError, match="NUL"):
        libc.umount2("/proc\0/sys", 0)


def test_openat2_gives_descriptors_that_close_on_exec(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = libc.openat2(directory, "file", os.O_RDONLY)
        assert not os.get_inheritable(fd)
        assert os.read(fd, 10) == b"x"
        os.close(fd)
    finally:
        os.close(directory)


def test_mount_roots_are_told_from_directories(tmp_path: Path) -> None:
    assert libc.is_mount_root("/proc")
    assert not libc.is_mount_root(str(tmp_path))
