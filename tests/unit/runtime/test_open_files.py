from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from isulad_py.runtime import open_files


def test_files_and_sockets_are_counted(tmp_path: Path) -> None:
    before = open_files.count([os.getpid()])
    with socket.socket(), (tmp_path / "f").open("w"):
        after = open_files.count([os.getpid()])
    assert after.descriptors == before.descriptors + 2
    assert after.sockets == before.sockets + 1


def test_what_has_ended_counts_nothing() -> None:
    gone = 2**22 + 1
    assert open_files.count([gone]) == open_files.OpenFiles(descriptors=0, sockets=0)
    assert open_files.soft_limit(gone) is None


def test_counting_ends_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "MOST", 2)
    assert open_files.count([os.getpid()] * 3).descriptors == 2


def test_the_soft_limit() -> None:
    assert open_files.soft_limit(os.getpid()) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
