"""Copies of the mount namespace that lack one mount."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.host import libc, mount_copies, mounts, threads
from isulad_py.model.errors import HostFailure


def test_what_is_not_mounted_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(HostFailure, match="copy the mounts without"):
        mount_copies.without(str(tmp_path))


@pytest.mark.root
def test_only_the_one_mount_is_missing_and_only_in_the_copy(tmp_path: Path) -> None:
    """Below a shared mount, which would hand the unmounting on."""
    (tmp_path / "shared").mkdir()
    mounts.mount("tmpfs", str(tmp_path / "shared"), "tmpfs", data="size=64k")
    mounts.mount("", str(tmp_path / "shared"), flags=mounts.MS_SHARED)
    points = [tmp_path / "shared/a", tmp_path / "shared/b"]
    try:
        for point in points:
            point.mkdir()
            mounts.mount("tmpfs", str(point), "tmpfs", data="size=64k")
        fd = mount_copies.without(str(points[0]))

        def look() -> list[bool]:
            libc.unshare(libc.CLONE_FS)
            libc.setns(fd, libc.CLONE_NEWNS)
            return [mounts.is_mountpoint(str(point)) for point in points]

        try:
            assert threads.run_in_fresh_thread(look, name="look") == [False, True]
        finally:
            os.close(fd)
        assert all(mounts.is_mountpoint(str(point)) for point in points)
    finally:
        mounts.unmount_under(str(tmp_path))
