"""The unix socket."""

from __future__ import annotations

import grp
import os
import socket
import stat
from pathlib import Path

import pytest

from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput
from isulad_py.wire.listener import UnixListener


def test_the_socket_is_for_root_and_a_group(tmp_path: Path) -> None:
    own = grp.getgrgid(os.getgid()).gr_name
    listener = UnixListener(str(tmp_path / "new" / "s.sock"), group=own)
    with listener.open():
        found = listener.path.stat()
        assert stat.S_IMODE(found.st_mode) == 0o660
        assert found.st_gid == os.getgid()
        assert [path.name for path in listener.path.parent.iterdir()] == ["s.sock"]
        listener.remove()
        listener.remove()
    assert not list(listener.path.parent.iterdir())


def test_a_group_that_is_not_there_leaves_root(tmp_path: Path) -> None:
    listener = UnixListener(str(tmp_path / "s.sock"), group="no-such-group")
    with listener.open():
        assert stat.S_IMODE(listener.path.stat().st_mode) == 0o660


def test_the_socket_of_a_dead_daemon_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listener = UnixListener(str(path))
    with listener.open(), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_the_socket_of_a_living_daemon_is_left_alone(tmp_path: Path) -> None:
    first, second = UnixListener(str(tmp_path / "s.sock")), UnixListener(str(tmp_path / "s.sock"))
    with first.open():
        with pytest.raises(FailedPrecondition, match="another process listens on"):
            second.open()
        second.remove()
        assert first.path.exists()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(FailedPrecondition, match="is not a socket"):
        UnixListener(str(path)).open()
    assert path.read_text() == "precious"


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is longer than"):
        UnixListener("/" + "x" * 100).open()
    (tmp_path / "file").write_text("")
    with pytest.raises(HostFailure, match="listen on"):
        UnixListener(str(tmp_path / "file" / "s.sock")).open()
