"""Packets over local sockets, as the monitor's are."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import packets
from isulad_py.model.errors import FailedPrecondition, Unavailable


class Far:
    """Both ends of a connection; what arrives at ours is kept."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.near, self.far):
            end.setblocking(False)
        self.got: list[bytes] = []
        self.ended = asyncio.Event()
        self.packets = packets.Packets(self.near, on_packet=self.got.append, on_end=self.ended.set)

    async def arrive(self, count: int) -> None:
        while len(self.got) < count:
            await asyncio.sleep(0)


@pytest.fixture
async def far() -> Iterator[Far]:  # type: ignore[misc]  # an asynchronous generator, to pytest-asyncio
    made = Far()
    yield made
    made.packets.close()
    made.near.close()
    made.far.close()


async def test_packets_are_kept_apart_and_the_end_is_told_once(far: Far) -> None:
    far.packets.resume()
    far.packets.resume()
    for word in (b"one", b"two", b"\0"):
        far.far.send(word)
    await far.arrive(3)
    assert far.got == [b"one", b"two", b"\0"]
    assert not far.ended.is_set()
    far.far.close()
    await far.ended.wait()
    far.packets.resume()


async def test_nothing_is_taken_while_it_pauses(far: Far) -> None:
    far.far.send(b"early")
    await asyncio.sleep(0)
    assert far.got == []
    far.packets.resume()
    await far.arrive(1)
    far.packets.pause()
    far.packets.pause()
    far.far.send(b"late")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert far.got == [b"early"]
    far.packets.resume()
    await far.arrive(2)


async def test_a_pause_takes_effect_between_two_packets() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setblocking(False)
    got: list[bytes] = []
    reader: packets.Packets

    def once(packet: bytes) -> None:
        got.append(packet)
        reader.pause()

    reader = packets.Packets(near, on_packet=once, on_end=lambda: None)
    far.send(b"1")
    far.send(b"2")
    reader.resume()
    for _ in range(5):
        await asyncio.sleep(0)
    assert got == [b"1"]
    reader.close()
    near.close()
    far.close()


async def test_who_is_silenced_fails_at_once_and_sees_no_end(far: Far) -> None:
    packets.silence(far.near)
    with pytest.raises(BrokenPipeError):
        far.far.send(b"x")
    with pytest.raises(BlockingIOError):
        far.far.recv(10)
    far.near.send(b"goes on")
    assert far.far.recv(10) == b"goes on"


async def test_what_is_sent_is_cut_into_packets_and_ends_with_a_half_close(far: Far) -> None:
    sink = packets.PacketSink(far.near, packet_bytes=4)
    await sink.write(b"123456789")
    await sink.write(b"")
    await sink.close()
    await sink.close()
    assert [far.far.recv(100) for _ in range(4)] == [b"1234", b"5678", b"9", b""]
    far.far.send(b"answer")
    far.packets.resume()
    await far.arrive(1)
    with pytest.raises(Unavailable):
        await sink.write(b"x")


async def test_who_does_not_take_them_makes_the_sender_wait(far: Far) -> None:
    sink = packets.PacketSink(far.near, packet_bytes=8192)
    sending = asyncio.ensure_future(sink.write(bytes(2_000_000)))
    for _ in range(2000):
        await asyncio.sleep(0)
    assert not sending.done()
    far.far.close()
    with pytest.raises(Unavailable):
        await sending
    await sink.close()


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


async def test_connecting_by_a_path_that_is_too_long_for_a_socket(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    fd = os.open(directory, os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"/proc/self/fd/{fd}/attach")
        os.close(fd)
        with pytest.raises(FailedPrecondition, match="nobody"):
            await packets.connect(str(directory), "attach", sleep=no_sleep)
        listening.listen(0)
        first = await packets.connect(str(directory), "attach", sleep=no_sleep)
        with pytest.raises(Unavailable, match="busy"):  # the queue is full
            await packets.connect(str(directory), "attach", sleep=no_sleep)
        accepted, _ = listening.accept()
        second = await packets.connect(str(directory), "attach", sleep=no_sleep)
        for end in (first, accepted, second):
            end.close()


async def test_connecting_where_nothing_is(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FailedPrecondition):
        await packets.connect(str(tmp_path), "attach", sleep=no_sleep)
    with pytest.raises(FailedPrecondition):
        await packets.connect(str(tmp_path / "nowhere"), "attach", sleep=no_sleep)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
