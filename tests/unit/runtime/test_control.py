"""The monitor's control fifo, with the test at its other end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.model.container import Processes
from isulad_py.model.errors import DeadlineExceeded, FailedPrecondition, NotFound
from isulad_py.runtime.control import ANSWER_SECONDS, Control
from tests.fakes.clock import FakeClock


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "ctl")
    return str(tmp_path / "ctl")


@pytest.fixture
def reader(fifo: str) -> Iterator[int]:
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    yield fd
    os.close(fd)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_size_is_height_first(fifo: str, reader: int) -> None:
    clock = FakeClock()
    sending = asyncio.ensure_future(Control(clock=clock).resize(fifo, width=80, height=24))
    await settle()
    assert os.read(reader, 100) == b"1 24 80\n"
    clock.advance(1)
    await sending


async def test_one_line_at_a_time(fifo: str, reader: int) -> None:
    clock = FakeClock()
    control = Control(clock=clock)
    sending = [asyncio.ensure_future(control.resize(fifo, width=width, height=1)) for width in (1, 2)]
    await settle()
    assert os.read(reader, 100) == b"1 1 1\n"
    clock.advance(1)
    await settle()
    assert os.read(reader, 100) == b"1 1 2\n"
    clock.advance(1)
    await asyncio.gather(*sending)


async def test_a_monitor_that_does_not_read(fifo: str, reader: int) -> None:
    clock = FakeClock()
    sending = asyncio.ensure_future(Control(clock=clock).resize(fifo, width=80, height=24))
    await settle()
    clock.advance(ANSWER_SECONDS + 1)
    with pytest.raises(DeadlineExceeded, match="control fifo"):
        await sending


async def test_a_monitor_that_ends_without_reading(fifo: str) -> None:
    clock = FakeClock()
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    sending = asyncio.ensure_future(Control(clock=clock).resize(fifo, width=80, height=24))
    await settle()
    os.close(reader)
    clock.advance(0.01)
    with pytest.raises(FailedPrecondition, match="monitor has ended"):
        await sending


async def test_a_monitor_that_has_ended(fifo: str) -> None:
    with pytest.raises(FailedPrecondition, match="monitor has ended"):
        await Control(clock=FakeClock()).resize(fifo, width=80, height=24)


async def test_no_fifo(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await Control(clock=FakeClock()).resize(str(tmp_path / "ctl"), width=80, height=24)


async def test_a_log_that_the_monitor_writes_to_is_left_alone(fifo: str, tmp_path: Path) -> None:
    ourselves = Processes(monitor_pid=os.getpid(), monitor_started=1)
    with (tmp_path / "0.log").open("w"):
        await Control(clock=FakeClock()).reopen_log(fifo, str(tmp_path / "0.log"), ourselves)


class OpeningClock(FakeClock):
    """At the first sleep the monitor has opened the new file."""

    def __init__(self, path: Path, reader: int) -> None:
        super().__init__()
        self._path = path
        self._reader = reader
        self.said = b""
        self.fd = -1

    async def sleep(self, seconds: float) -> None:
        if self.fd < 0:
            self.said = os.read(self._reader, 100)
            self.fd = os.open(self._path, os.O_WRONLY | os.O_CREAT)


async def test_a_log_that_was_moved_is_opened_anew(fifo: str, reader: int, tmp_path: Path) -> None:
    clock = OpeningClock(tmp_path / "0.log", reader)
    ourselves = Processes(monitor_pid=os.getpid(), monitor_started=1)
    await Control(clock=clock).reopen_log(fifo, str(tmp_path / "0.log"), ourselves)
    os.close(clock.fd)
    assert clock.said == b"2 0 0\n"
