"""Directories found and made by paths that lead through links. Inside a layer: test_layer_tree.py."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import libc, parents
from isulad_py.host.parents import DIRECTORY, Parents


class Made:
    def __init__(self) -> None:
        self.paths: list[bytes] = []

    def __call__(self, above: int, part: bytes, path: bytes) -> int:
        os.mkdir(part, dir_fd=above)
        self.paths.append(path)
        return os.open(part, DIRECTORY, dir_fd=above)


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def tree(tmp_path: Path, made: Made) -> Iterator[Parents]:
    (tmp_path / "root").mkdir()
    found = Parents(str(tmp_path / "root"), made)
    yield found
    found.close()


def seen(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}").rpartition("/root")[2]  # noqa: PTH115 -- as the kernel writes it


def test_what_is_there_is_found_through_links(tree: Parents, tmp_path: Path, made: Made) -> None:
    (tmp_path / "root/a/b").mkdir(parents=True)
    (tmp_path / "root/a/up").symlink_to("../../../a/b/..")
    (tmp_path / "root/abs").symlink_to("/a/b")
    assert [seen(tree.find(path)) for path in (b"", b"a", b"a/up", b"abs", b"a/up/b")] == [
        "",
        "/a",
        "/a",
        "/a/b",
        "/a/b",
    ]
    with pytest.raises(FileNotFoundError):
        tree.find(b"a/c")
    assert made.paths == []


def test_what_is_missing_is_made_where_links_lead(tree: Parents, tmp_path: Path, made: Made) -> None:
    (tmp_path / "root/var").mkdir()
    (tmp_path / "root/var/run").symlink_to("../run")
    (tmp_path / "root/out").symlink_to("../../../elsewhere/./x/..//y")
    assert seen(tree.need(b"var/run/lock")) == "/run/lock"
    assert seen(tree.need(b"out/z")) == "/elsewhere/y/z"
    assert made.paths == [b"run", b"run/lock", b"elsewhere", b"elsewhere/x", b"elsewhere/y", b"elsewhere/y/z"]
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_loops_and_files_in_the_way(tree: Parents, tmp_path: Path) -> None:
    (tmp_path / "root/a").symlink_to("b")
    (tmp_path / "root/b").symlink_to("a")
    (tmp_path / "root/file").touch()
    for number in range(parents.MAX_LINKS):
        (tmp_path / f"root/l{number}").symlink_to(f"l{number + 1}")
    for path, number in ((b"a/x", errno.ELOOP), (b"file/x", errno.ENOTDIR), (b"n" * 256 + b"/x", errno.ENAMETOOLONG)):
        with pytest.raises(OSError) as caught:
            tree.need(path)
        assert caught.value.errno == number
    assert seen(tree.need(b"l0/x")) == f"/l{parents.MAX_LINKS}/x"
    (tmp_path / "root/l-1").symlink_to("l0")
    (tmp_path / f"root/l{parents.MAX_LINKS}/x").rmdir()
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        tree.need(b"l-1/x")


def test_renames_elsewhere_do_not_matter(
    tree: Parents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Made
) -> None:
    (tmp_path / "root/a/b").mkdir(parents=True)
    (tmp_path / "root/a/up").symlink_to("../a/b")

    def busy(directory_fd: int, path: str, flags: int, *, mode: int = 0, resolve: int = 0) -> int:
        if "up" in path:  # the kernel meets `..` there
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(directory_fd, path, flags, mode=mode, resolve=resolve)

    real = libc.openat2
    monkeypatch.setattr(libc, "openat2", busy)
    assert seen(tree.find(b"a/up")) == "/a/b"
    with pytest.raises(FileNotFoundError):
        tree.find(b"a/up/missing")
    assert made.paths == []
    assert seen(tree.need(b"a/up/missing")) == "/a/b/missing"


def test_few_are_held_open(tree: Parents, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for number in range(3 * parents.MAX_OPEN):
        tree.need(b"d%d" % number)
        tree.close_retired()
    assert len(os.listdir("/proc/self/fd")) - before <= parents.MAX_OPEN  # noqa: PTH208
    first = tree.find(b"d0")
    tree.forget()
    assert seen(first) == "/d0"
    tree.close_retired()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(first)
