"""The monitor's control fifo, with the test at its other end."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.model.container import Processes
from isulad_py.model.errors import DeadlineExceeded, FailedPrecondition, NotFound, ResourceExhausted
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


OURSELVES = Processes(monitor_pid=os.getpid(), monitor_started=pidfd.start_time(os.getpid()))


async def test_a_log_that_the_monitor_writes_to_is_left_alone(fifo: str, tmp_path: Path) -> None:
    with (tmp_path / "0.log").open("w"):
        await Control(clock=FakeClock()).reopen_log(fifo, str(tmp_path / "0.log"), OURSELVES)
    assert [entry.name for entry in tmp_path.glob("0.log*")] == ["0.log"]


class OpeningClock(FakeClock):
    """At the first sleep the monitor has moved the new file to its place, and has it open."""

    def __init__(self, path: Path, reader: int) -> None:
        super().__init__()
        self._path = path
        self._reader = reader
        self.said = b""
        self.fd = -1

    async def sleep(self, seconds: float) -> None:
        if self.fd < 0:
            self.said = os.read(self._reader, 100)
            self.fd = os.open(self._path.with_suffix(".log.tmp"), os.O_WRONLY)
            self._path.with_suffix(".log.tmp").rename(self._path)


async def test_a_log_that_was_moved_is_opened_anew(fifo: str, reader: int, tmp_path: Path) -> None:
    clock = OpeningClock(tmp_path / "0.log", reader)
    await Control(clock=clock).reopen_log(fifo, str(tmp_path / "0.log"), OURSELVES)
    os.close(clock.fd)
    assert clock.said == b"2 0 0\n"


def in_the_way(log: Path, what: str) -> None:
    temporary = log.with_suffix(".log.tmp")
    if what == "a directory":
        log.mkdir()
    elif what == "no folder":
        log.parent.rmdir()
    elif what == "a directory beside it":
        temporary.mkdir()
    elif what == "a link beside it":
        temporary.symlink_to(log.parent.parent / "elsewhere")
    else:
        os.mkfifo(temporary)


@pytest.mark.parametrize(
    "what", ["a directory", "no folder", "a directory beside it", "a link beside it", "a fifo beside it"]
)
async def test_the_monitor_is_not_told_to_open_what_would_end_it(
    fifo: str, reader: int, tmp_path: Path, what: str
) -> None:
    log = tmp_path / "logs" / "0.log"
    log.parent.mkdir()
    in_the_way(log, what)
    with pytest.raises(FailedPrecondition, match=re.escape(str(log))):
        await Control(clock=FakeClock()).reopen_log(fifo, str(log), OURSELVES)
    assert os.read(reader, 100) == b""
    assert not (tmp_path / "elsewhere").exists()


async def test_a_disk_that_is_full_is_told_as_such(fifo: str, reader: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/logs/0.log.tmp")

    monkeypatch.setattr("isulad_py.runtime.control.os.open", full)
    with pytest.raises(ResourceExhausted, match=r"/logs/0\.log\.tmp: no space left"):
        await Control(clock=FakeClock()).reopen_log(fifo, "/logs/0.log", OURSELVES)


async def test_nothing_is_left_where_nobody_reopens_the_log(fifo: str, tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    with pytest.raises(FailedPrecondition, match="monitor has ended"):
        await Control(clock=FakeClock()).reopen_log(fifo, str(log), OURSELVES)
    nobody = Processes(monitor_pid=os.getpid(), monitor_started=1)
    with pytest.raises(FailedPrecondition, match=r"0\.log: the container's monitor has ended"):
        await Control(clock=FakeClock()).reopen_log(fifo, str(log), nobody)
    assert list(tmp_path.glob("0.log*")) == []
