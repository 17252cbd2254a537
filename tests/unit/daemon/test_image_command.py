"""The command on a graph of its own: what comes in, goes out, and who else is there."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from isulad_py.daemon.cli import run
from isulad_py.daemon.image_command import BAD_ARGUMENTS
from isulad_py.daemon.state_lock import StateLock
from tests.images import File, tar


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph"
    path.mkdir()
    return path


def image(graph: Path, *argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = run(["image", "--graph", str(graph), *argv], out=out, err=err)
    return status, out.getvalue(), err.getvalue()


def test_in_out_and_in_again(graph: Path, tmp_path: Path) -> None:
    root = tmp_path / "root.tar"
    root.write_bytes(tar([File("hello", b"hi", uid=os.geteuid(), gid=os.getegid())]))
    status, made, err = image(graph, "import", str(root), "made:1")
    assert (status, err) == (0, "")
    assert image(graph, "tag", "made:1", "example.org/other:2")[0] == 0
    _, listed, _ = image(graph, "ls")
    assert listed.split() == [*made.split()[:2], "docker.io/library/made:1", "example.org/other:2"]
    archive = tmp_path / "out.tar"
    assert image(graph, "save", "made:1", str(archive), "--format", "oci-archive")[0] == 0
    other = tmp_path / "other"
    other.mkdir()
    status, loaded, err = image(other, "load", str(archive), "--name", "again:3")
    assert (status, err) == (0, "")
    assert loaded.split()[0] == made.split()[0]
    assert loaded.split()[2:] == ["docker.io/library/made:1", "docker.io/library/again:3"]


def test_a_running_daemon_keeps_its_graph(graph: Path, tmp_path: Path) -> None:
    lock = StateLock.acquire(graph=str(graph), state=str(tmp_path / "state"), pid_file=str(tmp_path / "pid"))
    try:
        status, out, err = image(graph, "ls")
    finally:
        lock.release()
    assert (status, out) == (1, "")
    assert f"is in use by another isulad, pid {os.getpid()}" in err
    assert image(graph, "ls") == (0, "", "")


def test_what_is_wrong_is_said_in_a_line(graph: Path, tmp_path: Path) -> None:
    assert image(graph, "load", "/absent.tar")[::2] == (
        1,
        "isulad image: archive /absent.tar: no such file or directory\n",
    )
    assert image(graph, "save", "absent:1", str(tmp_path / "x"))[0] == 1
    status, _, err = image(graph, "save", "absent:1")
    assert status == BAD_ARGUMENTS
    assert "path" in err
    assert image(tmp_path / "nowhere", "ls")[0] == 1
