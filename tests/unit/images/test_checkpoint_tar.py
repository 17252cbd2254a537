from __future__ import annotations

import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from isulad_py.images.checkpoint_tar import TarWriter
from isulad_py.images.tar import Kind, TarReader
from isulad_py.model.errors import Aborted, HostFailure


def written(path: Path, work: Callable[[TarWriter], None], *, stopped: bool = False) -> Path:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        writer = TarWriter(fd, lambda: stopped)
        work(writer)
        writer.finish()
    finally:
        os.close(fd)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "file").write_bytes(b"x" * 1000)
    os.link(root / "file", root / "twin")
    (root / "link").symlink_to("file")
    os.mkfifo(root / "fifo")
    (root / "empty").touch(0o640)
    (root / "folder").mkdir(0o750)
    (root / os.fsdecode(b"caf\xe9")).write_text("not UTF-8")
    (root / ("long" * 60)).write_text("long")
    os.utime(root / "file", ns=(1, 1_234_567_890_123_456_789))
    return root


def everything(root: Path) -> Callable[[TarWriter], None]:
    def work(writer: TarWriter) -> None:
        for path in sorted(root.iterdir()):
            writer.entry(path.name, str(path))

    return work


def test_entries_are_what_other_programs_read(tree: Path, tmp_path: Path) -> None:
    with tarfile.open(written(tmp_path / "a.tar", everything(tree))) as archive:
        members = {member.name: member for member in archive}
        assert set(members) == {path.name for path in tree.iterdir()}
        assert archive.extractfile("file").read() == b"x" * 1000  # type: ignore[union-attr]
        assert (members["twin"].islnk(), members["twin"].linkname) == (True, "file")
        assert (members["link"].issym(), members["link"].linkname) == (True, "file")
        assert members["fifo"].isfifo()
        assert (members["folder"].isdir(), members["folder"].mode) == (True, 0o750)
        assert members["empty"].mode == 0o640
        assert members["file"].uid == os.geteuid()


def test_entries_are_what_we_read(tree: Path, tmp_path: Path) -> None:
    data = written(tmp_path / "a.tar", everything(tree)).read_bytes()
    entries = {entry.name: entry for entry in TarReader([data])}
    assert entries[b"file"].mtime_ns == 1_234_567_890_123_456_789
    assert entries[b"twin"].kind is Kind.HARDLINK
    assert b"caf\xe9" in entries


def test_xattrs_go_along(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    try:
        os.setxattr(path, "user.note", b"\xff\0\n")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    data = written(tmp_path / "a.tar", lambda writer: writer.entry("file", str(path))).read_bytes()
    [entry] = TarReader([data])
    assert entry.xattrs == {"user.note": b"\xff\0\n"}


def test_sockets_are_left_out(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/cwd/{os.path.relpath(tmp_path)}/s")
        work = everything(tmp_path / "sub")
        (tmp_path / "sub").mkdir()
        (tmp_path / "s").rename(tmp_path / "sub/s")
        assert list(TarReader([written(tmp_path / "a.tar", work).read_bytes()])) == []


def test_documents_and_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("line\n" * 300)
    (tmp_path / "link").symlink_to("log")

    def work(writer: TarWriter) -> None:
        writer.directory("checkpoint")
        writer.document("config.dump", b"{}")
        writer.file("container.log", str(tmp_path / "log"))

    with tarfile.open(written(tmp_path / "a.tar", work)) as archive:
        assert archive.getnames() == ["checkpoint", "config.dump", "container.log"]
        assert archive.extractfile("container.log").read() == b"line\n" * 300  # type: ignore[union-attr]
        assert {member.mode for member in archive if member.isfile()} == {0o600}
    with pytest.raises(OSError, match="symbolic"):
        written(tmp_path / "b.tar", lambda writer: writer.file("x", str(tmp_path / "link")))
    with pytest.raises(HostFailure, match="not a regular file"):
        written(tmp_path / "c.tar", lambda writer: writer.file("x", "/dev/null"))


def test_a_writer_that_nobody_waits_for_stops(tmp_path: Path) -> None:
    with pytest.raises(Aborted):
        written(tmp_path / "a.tar", lambda writer: writer.document("x", b""), stopped=True)
