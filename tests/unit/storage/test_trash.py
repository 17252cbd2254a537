"""Deletion in two steps."""

from __future__ import annotations

from pathlib import Path

from isulad_py.host.tasks import TaskOwner
from isulad_py.storage.trash import Trash
from tests.fakes.tasks import TestTasks


async def test_what_is_taken_is_gone_at_once_and_removed_later(tmp_path: Path) -> None:
    bin_, tree = tmp_path / "trash", tmp_path / "tree"
    bin_.mkdir()
    (tree / "deep").mkdir(parents=True)
    (tree / "deep/file").write_text("x")
    tasks = TestTasks()
    trash = Trash(str(bin_), tasks=tasks)
    assert trash.take(str(tree))
    assert not tree.exists()
    assert not trash.take(str(tree))
    assert len(list(bin_.iterdir())) == 1
    trash.empty()
    trash.empty()
    assert len(tasks.running) == 1
    await tasks.settle()
    assert list(bin_.iterdir()) == []


async def test_what_was_left_by_another_is_removed_too(tmp_path: Path) -> None:
    for number in range(150):
        (tmp_path / f"left{number}").mkdir()
    (tmp_path / "file").write_text("x")
    tasks = TestTasks()
    Trash(str(tmp_path), tasks=tasks).empty()
    await tasks.settle()
    assert list(tmp_path.iterdir()) == []


async def test_while_the_daemon_stops_it_is_left_to_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    owner = TaskOwner(on_failure=lambda *_: None)
    await owner.close()
    Trash(str(tmp_path), tasks=owner).empty()
    assert (tmp_path / "left").exists()
