from __future__ import annotations

import os
from pathlib import Path

from isulad_py.host import trees


def test_a_tree_goes_without_following_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_bytes(b"x")
    (tree / "a" / "out").symlink_to(outside)
    (tree / "dangling").symlink_to("/nowhere")
    os.mkfifo(tree / "fifo")
    trees.remove_tree(str(tree) + "/")
    assert not tree.exists()
    assert (outside / "kept").exists()


def test_a_link_is_removed_itself(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    # As root the kernel says "not a directory" for a link that may not be followed.
    trees.remove_tree(str(tmp_path / "link"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["target"]


def test_removal_is_idempotent_and_takes_a_file_too(tmp_path: Path) -> None:
    trees.remove_tree(str(tmp_path / "absent"))
    trees.remove_tree(str(tmp_path / "absent" / "below"))
    (tmp_path / "file").write_bytes(b"")
    trees.remove_tree(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()


def test_nesting_deeper_than_there_are_descriptors(tmp_path: Path) -> None:
    top = tmp_path / "deep"
    top.mkdir()
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        (below, _) = (os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd), os.close(fd))
        fd = below
    os.close(fd)
    trees.remove_tree(str(top))
    assert not top.exists()
