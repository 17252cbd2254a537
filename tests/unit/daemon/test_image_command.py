"""The command on a graph of its own: what comes in, goes out, and who else is there."""

from __future__ import annotations

import io
import json
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


def test_removed_and_looked_at(graph: Path, tmp_path: Path) -> None:
    root = tmp_path / "root.tar"
    root.write_bytes(tar([File("hello", b"hi", uid=os.geteuid(), gid=os.getegid())]))
    assert image(graph, "import", str(root), "made:1")[0] == 0
    assert image(graph, "tag", "made:1", "other:2")[0] == 0
    status, inspected, _ = image(graph, "inspect", "made:1")
    assert (status, json.loads(inspected)["image"]["repo_tags"]) == (0, ["made:1", "other:2"])
    assert image(graph, "rm", "made:1", "other:2") == (0, "", "")
    assert image(graph, "ls") == (0, "", "")
    assert image(graph, "rm", "made:1")[::2] == (1, "isulad image: image.image: made:1 is not on this node\n")


def test_passwords_are_not_arguments(graph: Path) -> None:
    status, _, err = image(graph, "pull", "app:1", "--creds", "user:hunter2")
    assert status == BAD_ARGUMENTS
    assert "standard input" in err
    assert "hunter2" not in err


def test_the_daemon_that_is_named_has_to_answer(graph: Path, tmp_path: Path) -> None:
    status, _, err = image(graph, "--host", f"unix://{tmp_path}/absent.sock", "ls")
    assert (status, err) == (
        1,
        f"isulad image: no daemon answers at {tmp_path}/absent.sock: no such file or directory\n",
    )
    (tmp_path / "file").write_text("")
    assert image(graph, "--host", f"unix://{tmp_path}/file", "ls")[0] == 1
    assert image(graph, "--host", f"unix://{'x' * 200}", "ls")[0] == 1


def test_the_daemons_configuration_says_where(graph: Path, tmp_path: Path) -> None:
    config = tmp_path / "daemon.json"
    config.write_text(json.dumps({"graph": str(graph), "hosts": [f"unix://{tmp_path}/absent.sock"]}))
    out, err = io.StringIO(), io.StringIO()
    assert run(["image", "--config", str(config), "ls"], out=out, err=err) == 0
    config.write_text("{")
    assert run(["image", "--config", str(config), "ls"], out=out, err=err) == 1
    assert "daemon.json" in err.getvalue()


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
