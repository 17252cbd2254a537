from __future__ import annotations

import os
from pathlib import Path

import pytest

from isulad_py.daemon.state_lock import StateLock
from isulad_py.model.errors import FailedPrecondition, HostFailure


def acquire(base: Path, graph: str = "graph", state: str = "state", pid_file: str = "run/isulad.pid") -> StateLock:
    return StateLock.acquire(graph=str(base / graph), state=str(base / state), pid_file=str(base / pid_file))


def test_a_second_daemon_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    lock = acquire(tmp_path)
    for other in ({"graph": "g2"}, {"state": "s2"}, {"graph": "g2", "state": "s2"}):
        with pytest.raises(FailedPrecondition, match=f"in use by another isulad, pid {os.getpid()}"):
            acquire(tmp_path, **other)
    acquire(tmp_path, "g3", "s3", "p3").release()
    lock.release()
    lock.release()
    acquire(tmp_path).release()


def test_a_refused_daemon_leaves_the_first_ones_files(tmp_path: Path) -> None:
    lock = acquire(tmp_path)
    with pytest.raises(FailedPrecondition):
        acquire(tmp_path)
    assert (tmp_path / "run/isulad.pid").read_text() == f"{os.getpid()}\n"
    lock.release()
    assert not (tmp_path / "run/isulad.pid").exists()


def test_what_a_killed_daemon_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/isulad.pid").write_text("123456789 and more\n")
    lock = acquire(tmp_path)
    assert (tmp_path / "run/isulad.pid").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_roots_are_made_so_that_others_can_pass_and_not_look(tmp_path: Path) -> None:
    """The OCI runtime comes as root of a pod's user namespace, which is nobody here."""
    acquire(tmp_path).release()
    for name in ("graph", "state"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0o011


def test_a_root_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostFailure, match="file"):
        acquire(tmp_path, graph="file/graph")
