"""What a tree takes on disk."""

from __future__ import annotations

import os
from pathlib import Path

from isulad_py.host.tree_usage import measure_tree
from isulad_py.host.trees import remove_tree


def test_links_count_once_and_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(bytes(1_000_000))
    (root / "file").write_bytes(bytes(100_000))
    os.link(root / "file", root / "again")
    (root / "link").symlink_to(outside)
    (root / "sub").mkdir()
    os.mkfifo(root / "sub/fifo")
    measured = measure_tree(str(root))
    assert measured is not None
    used, inodes = measured
    assert inodes == 5
    assert 100_000 <= used < 200_000


def test_a_hole_takes_nothing(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    measured = measure_tree(str(tmp_path))
    assert measured is not None
    assert measured[0] < 1 << 20


def test_no_tree_is_none(tmp_path: Path) -> None:
    assert measure_tree(str(tmp_path / "absent")) is None
    (tmp_path / "file").write_text("x")
    assert measure_tree(str(tmp_path / "file")) is None


def test_a_tree_deeper_than_a_path_can_say_is_measured_as_far_as_it_goes(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    fd = os.open(deep, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=fd)
        child = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = child
    os.close(fd)
    measured = measure_tree(str(deep))
    remove_tree(str(deep))  # too deep for anybody else's cleaning
    assert measured is not None
    assert 15 < measured[1] < 60
