"""Descriptors as byte streams. Real pipes: what they do when full or closed is the point."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host.descriptors import PIPE_BYTES, Sink, Source, give_pipes, pipe
from isulad_py.model.errors import HostFailure, Unavailable


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def _nothing_is_left_open() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before


async def both() -> tuple[Source, Sink]:
    reading, writing = pipe()
    return Source(reading), Sink(writing)


async def test_bytes_arrive_in_order_and_the_end_is_told_for_ever() -> None:
    source, sink = await both()
    await sink.write(b"\0\xff one")
    await sink.write(b" two")
    assert await source.read(5) == b"\0\xff on"
    assert await source.read(100) == b"e two"
    await sink.close()
    await sink.close()
    assert await source.read(100) == b""
    assert await source.read(100) == b""
    source.close()
    source.close()
    assert await source.read(100) == b""


async def test_more_than_a_pipe_holds_waits_for_its_reader() -> None:
    source, sink = await both()
    data = os.urandom(3 * PIPE_BYTES)
    writing = asyncio.ensure_future(sink.write(data))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    got = b""
    while len(got) < len(data):
        got += await source.read(50_000)
    await writing
    assert got == data
    await sink.close()
    source.close()


async def test_a_cancelled_read_loses_nothing() -> None:
    source, sink = await both()
    reading = asyncio.ensure_future(source.read(10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    os.write(sink._fd, b"late")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await source.read(10) == b"late"
    await sink.close()
    source.close()


async def test_a_close_wakes_the_reader() -> None:
    source, sink = await both()
    reading = asyncio.ensure_future(source.read(10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    source.close()
    assert await reading == b""
    await sink.close()


async def test_a_close_wakes_the_writer() -> None:
    source, sink = await both()
    writing = asyncio.ensure_future(sink.write(bytes(2 * PIPE_BYTES)))
    for _ in range(3):
        await asyncio.sleep(0)
    await sink.close()
    with pytest.raises(Unavailable, match="closed"):
        await writing
    with pytest.raises(Unavailable):
        await sink.write(b"x")
    source.close()


async def test_a_reader_that_goes_away_is_told_to_who_writes_and_who_waits_to() -> None:
    source, sink = await both()
    writing = asyncio.ensure_future(sink.write(bytes(2 * PIPE_BYTES)))
    for _ in range(3):
        await asyncio.sleep(0)
    source.close()
    with pytest.raises(Unavailable, match="gone"):
        await writing
    await sink.close()


async def test_others_get_their_turn_while_a_stream_never_runs_dry() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    zero = Source(os.open("/dev/zero", os.O_RDONLY))
    null = Sink(os.open("/dev/null", os.O_WRONLY))
    task = asyncio.ensure_future(other())
    for _ in range(10):
        await null.write(await zero.read(100))
    assert turns >= 10
    task.cancel()
    zero.close()
    await null.close()


async def test_finishing_is_done_once_and_before_the_close() -> None:
    reading, writing = pipe()
    seen: list[bool] = []
    sink = Sink(writing, finish=lambda: seen.append(os.get_blocking(writing)))
    await sink.close()
    sink.abandon()
    assert seen == [False]
    os.close(reading)


@pytest.mark.root
def test_pipes_are_given_away_and_nothing_else(tmp_path: Path) -> None:
    ends = pipe()
    file = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    try:
        give_pipes([ends[0], f"/proc/self/fd/{ends[1]}", file, os.devnull], 100_000)
        assert [os.fstat(fd).st_uid for fd in (*ends, file)] == [100_000, 100_000, os.geteuid()]
        assert os.fstat(ends[0]).st_gid == os.getegid()
        assert Path(os.devnull).stat().st_uid == 0
    finally:
        for fd in (*ends, file):
            os.close(fd)
    with pytest.raises(HostFailure, match="give away a pipe"):
        give_pipes([f"/proc/self/fd/{file}"], 100_000)
