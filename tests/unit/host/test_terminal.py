"""Terminals that another side holds, and the socket that brings them. Real ones: openpty needs no root."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import termios
import tty
from pathlib import Path

import pytest

from isulad_py.host import terminal
from isulad_py.host.terminal import ConsoleSocket, Terminal
from isulad_py.model.errors import HostFailure, InvalidInput, Unavailable


class Session:
    """What holds a terminal's other side."""

    def __init__(self) -> None:
        master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.name = os.ttyname(self.slave)
        self.over = asyncio.Event()
        self.terminal = Terminal(master, session=self.over.wait)

    def leave(self) -> None:
        os.close(self.slave)


def size(fd: int) -> tuple[int, ...]:
    return struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))


async def read_all(near: Terminal) -> bytes:
    parts = []
    while data := await near.source.read(65536):
        parts.append(data)
    return b"".join(parts)


async def test_bytes_go_both_ways() -> None:
    session = Session()
    await session.terminal.sink.write(b"in\n")
    assert os.read(session.slave, 100) == b"in\n"
    os.write(session.slave, b"out")
    assert await session.terminal.source.read(100) == b"out"
    session.leave()
    session.terminal.close()


async def test_what_was_written_before_the_end_can_be_read_after_it() -> None:
    session = Session()
    written = os.write(session.slave, os.urandom(3000))
    session.leave()
    session.over.set()
    assert len(await read_all(session.terminal)) == written
    assert await session.terminal.source.read(1) == b""
    session.terminal.close()


async def test_a_terminal_that_is_opened_again_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LOOK_AGAIN_SECONDS", 0.0)
    session = Session()
    reading = asyncio.ensure_future(read_all(session.terminal))
    session.leave()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    again = os.open(session.name, os.O_RDWR | os.O_NOCTTY)
    os.write(again, b"still here")
    os.close(again)
    session.over.set()
    assert await reading == b"still here"
    session.terminal.close()


async def test_the_size_is_set_and_checked() -> None:
    session = Session()
    session.terminal.resize(80, 24)
    assert size(session.slave)[:2] == (24, 80)
    for width, height in ((-1, 5), (5, 70_000)):
        with pytest.raises(InvalidInput, match="terminal size"):
            session.terminal.resize(width, height)
    session.terminal.close()
    session.terminal.resize(1, 1)
    session.leave()


async def test_closing_input_ends_nothing_and_closing_all_hangs_up() -> None:
    session = Session()
    await session.terminal.sink.close()
    with pytest.raises(Unavailable):
        await session.terminal.sink.write(b"x")
    os.write(session.slave, b"goes on")
    assert await session.terminal.source.read(100) == b"goes on"
    session.terminal.close()
    session.terminal.close()
    assert os.read(session.slave, 10) == b""
    session.leave()


async def test_writing_to_a_terminal_that_nobody_has_open() -> None:
    session = Session()
    writing = asyncio.ensure_future(session.terminal.sink.write(bytes(1_000_000)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not writing.done()
    session.leave()
    with pytest.raises(Unavailable):
        await writing
    session.terminal.close()


def deep(path: Path) -> Path:
    """Longer than a socket's name may be."""
    directory = path / ("d" * 100)
    directory.mkdir()
    return directory


def send(argument: str, *fds: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as runtime:
        runtime.connect(argument)
        socket.send_fds(runtime, [b"/dev/pts/0"], list(fds))


def test_a_runtime_sends_a_terminal_and_leaves(tmp_path: Path) -> None:
    console = ConsoleSocket(deep(tmp_path).as_posix(), "console")
    assert len(console.argument) < 108
    master, slave = os.openpty()
    send(console.argument, master)
    os.close(master)
    received = console.receive()
    assert os.isatty(received)
    console.close()
    console.close()
    assert list(deep_left(tmp_path)) == []
    for fd in (received, slave):
        os.close(fd)


def deep_left(path: Path) -> list[Path]:
    return [entry for entry in path.rglob("*") if not entry.is_dir()]


def test_what_is_no_terminal_is_refused(tmp_path: Path) -> None:
    console = ConsoleSocket(str(tmp_path), "console")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(HostFailure, match="not sent"):
        console.receive()
    with Path("/dev/null").open() as null:
        send(console.argument, null.fileno())
    with pytest.raises(HostFailure, match="no terminal"):
        console.receive()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as runtime:
        runtime.connect(console.argument)
        with pytest.raises(HostFailure):
            console.receive()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    console.close()


def test_a_socket_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(HostFailure, match="listen for a terminal"):
        ConsoleSocket(str(tmp_path / "nowhere"), "console")
    (tmp_path / "console").touch()
    with pytest.raises(HostFailure, match="listen for a terminal"):
        ConsoleSocket(str(tmp_path), "console")
    assert (tmp_path / "console").exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_output_that_nobody_wants_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LOOK_AGAIN_SECONDS", 0.0)
    session = Session()
    session.terminal.source.discard()
    os.set_blocking(session.slave, False)

    async def say(fd: int, count: int) -> None:
        while count:
            try:
                count -= os.write(fd, bytes(min(count, 4096)))
            except BlockingIOError:
                await asyncio.sleep(0)

    await say(session.slave, 500_000)
    session.leave()
    for _ in range(5):
        await asyncio.sleep(0)
    again = os.open(session.name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    await say(again, 500_000)
    os.close(again)
    session.terminal.close()
    session.terminal.close()
