from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.daemon.systemd import Notifier, inherited_sockets


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(5)
        yield str(tmp_path / "notify"), receiver


def test_the_service_manager_is_told(manager: tuple[str, socket.socket]) -> None:
    address, receiver = manager
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000", "OTHER": "kept"}
    notifier = Notifier.from_environment(environment)
    assert environment == {"OTHER": "kept"}
    assert notifier.watchdog_seconds == 3.0
    notifier.ready("serving\non two")
    assert receiver.recv(1000) == b"READY=1\nSTATUS=serving on two"
    notifier.reloading()
    lines = receiver.recv(1000).decode().split("\n")
    assert lines[0] == "RELOADING=1"
    assert lines[1].startswith("MONOTONIC_USEC=")
    notifier.alive()
    assert receiver.recv(1000) == b"WATCHDOG=1"
    notifier.stopping("SIGTERM")
    assert receiver.recv(1000) == b"STOPPING=1\nSTATUS=stopping: SIGTERM"


def test_an_abstract_address() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(b"")  # the kernel picks an abstract name
        receiver.settimeout(5)
        name = receiver.getsockname()
        Notifier("@" + name[1:].decode()).alive()
        assert receiver.recv(1000) == b"WATCHDOG=1"


def test_silence_where_nobody_listens(tmp_path: Path) -> None:
    Notifier.from_environment({}).ready("x")
    Notifier(str(tmp_path / "gone")).ready("x")


def test_a_watchdog_for_another_process_is_not_ours() -> None:
    assert Notifier.from_environment({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}).watchdog_seconds == 0.0
    assert Notifier.from_environment({"WATCHDOG_USEC": "rubbish"}).watchdog_seconds == 0.0


def test_sockets_for_another_process_are_not_ours() -> None:
    environment = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x"}
    assert inherited_sockets(environment) == {}
    assert environment == {}


def test_inherited_sockets_are_known_by_their_path(tmp_path: Path) -> None:
    """In a child, because they are numbers 3 and up."""
    path = tmp_path / "isulad.sock"
    reader, writer = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        pid = os.fork()
        if pid == 0:
            os.dup2(listener.fileno(), 100)
            os.dup2(writer, 101)
            os.dup2(100, 3)
            found = inherited_sockets({"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})
            os.write(101, repr([(name, os.get_inheritable(s.fileno())) for name, s in found.items()]).encode())
            os._exit(0)
    os.close(writer)
    try:
        assert os.read(reader, 1000).decode() == repr([(str(path), False)])
    finally:
        os.close(reader)
        os.waitpid(pid, 0)
