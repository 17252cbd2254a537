"""Real mounts and trees below a temporary directory. Needs root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import mounts, trees
from isulad_py.model.errors import FailedPrecondition, HostFailure

pytestmark = pytest.mark.root


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    mounts.unmount_under(str(tmp_path))


def test_stacked_mounts_go_with_one_call(place: Path) -> None:
    target = place / "with space"
    target.mkdir()
    for _ in range(3):
        mounts.mount("tmpfs", str(target), "tmpfs", mounts.MS_NOSUID, "size=64k")
    assert mounts.is_mountpoint(str(target))
    assert mounts.mountpoints_under(str(place)) == [str(target)] * 3
    mounts.unmount(str(target))
    assert not mounts.is_mountpoint(str(target))
    mounts.unmount(str(target))


def test_mounts_are_found_through_links(place: Path) -> None:
    (place / "real").mkdir()
    (place / "link").symlink_to("real")
    mounts.mount("tmpfs", str(place / "real"), "tmpfs", data="size=64k")
    assert mounts.mountpoints_under(str(place / "link")) == [str(place / "real")]


def test_a_read_only_bind_is_read_only(place: Path) -> None:
    (place / "source").mkdir()
    (place / "target").mkdir()
    mounts.bind(str(place / "source"), str(place / "target"), readonly=True)
    with pytest.raises(OSError, match="Read-only"):
        (place / "target" / "x").write_bytes(b"")
    (place / "source" / "x").write_bytes(b"")


def test_a_refused_mount_names_its_target(place: Path) -> None:
    with pytest.raises(HostFailure, match=r"mount nosuchfs .*target"):
        mounts.mount("none", str(place / "target"), "nosuchfs")


def test_relative_paths_start_where_the_caller_says(place: Path) -> None:
    here = Path.cwd()
    for name in ("l1", "l2", "upper", "work", "merged"):
        (place / name).mkdir()
    (place / "l1" / "file").write_bytes(b"one")
    mounts.mount(
        "overlay",
        "merged",
        "overlay",
        data="lowerdir=l2:l1,upperdir=upper,workdir=work",
        cwd=str(place),
    )
    assert (place / "merged" / "file").read_bytes() == b"one"
    assert Path.cwd() == here


def test_a_detached_mount_can_be_made_and_attached(place: Path) -> None:
    (place / "t").mkdir()
    fd = mounts.new_filesystem("tmpfs", [("size", "64k"), ("mode", "700")], mounts.MOUNT_ATTR_NOSUID)
    try:
        mounts.set_attributes(fd, mounts.MOUNT_ATTR_RDONLY)
        mounts.attach(fd, str(place / "t"))
    finally:
        os.close(fd)
    assert os.statvfs(place / "t").f_flag & os.ST_RDONLY
    copy = mounts.clone_tree(str(place / "t"))
    try:
        (place / "u").mkdir()
        mounts.attach(copy, str(place / "u"))
    finally:
        os.close(copy)
    assert mounts.is_mountpoint(str(place / "u"))


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_tree_with_a_mount_in_it_is_refused_and_the_mount_untouched(place: Path, kind: str) -> None:
    inside = place / "tree" / "a" / "mnt"
    inside.mkdir(parents=True)
    (place / "data").mkdir()
    if kind == "tmpfs":
        mounts.mount("tmpfs", str(inside), "tmpfs", data="size=64k")
    else:
        mounts.bind(str(place / "data"), str(inside))
    (inside / "kept").write_bytes(b"x")
    with pytest.raises(FailedPrecondition, match="mnt is still mounted"):
        trees.remove_tree(str(place / "tree"))
    assert (inside / "kept").exists()
    mounts.unmount(str(inside))
    trees.remove_tree(str(place / "tree"))


def test_a_tree_that_is_itself_a_mount_is_refused(place: Path) -> None:
    (place / "tree").mkdir()
    mounts.mount("tmpfs", str(place / "tree"), "tmpfs", data="size=64k")
    (place / "tree" / "kept").write_bytes(b"x")
    with pytest.raises(FailedPrecondition, match="still mounted"):
        trees.remove_tree(str(place / "tree"))
    assert (place / "tree" / "kept").exists()


def test_a_tree_with_a_file_bound_in_it_is_refused(place: Path) -> None:
    (place / "tree").mkdir()
    (place / "tree" / "file").write_bytes(b"")
    (place / "source").write_bytes(b"x")
    mounts.bind(str(place / "source"), str(place / "tree" / "file"))
    with pytest.raises(FailedPrecondition, match="file is still mounted"):
        trees.remove_tree(str(place / "tree"))
