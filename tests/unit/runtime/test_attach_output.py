"""What a monitor sends, sorted and bounded."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from isulad_py.host import pidfd
from isulad_py.model.errors import ResourceExhausted
from isulad_py.ports.streams import ByteSource, StreamWishes
from isulad_py.runtime import attach_output
from isulad_py.runtime.attach_output import STDERR, STDOUT, Outputs, Patience

PACKET = bytes([STDOUT]) + bytes(8192)


@dataclass
class Bed:
    near: socket.socket
    monitor: socket.socket
    container: subprocess.Popen[bytes]

    def outputs(self, *, stall_seconds: float = 1000, buffer_bytes: int = 20_000, **wishes: bool) -> Outputs:
        return Outputs(
            self.near,
            StreamWishes(**wishes),
            container=(self.container.pid, pidfd.start_time(self.container.pid)),
            patience=Patience(buffer_bytes=buffer_bytes, stall_seconds=stall_seconds),
        )

    async def fill(self) -> int:
        """Until the monitor would have to wait; how many packets."""
        count = 0
        turns = 0
        while turns < 20:
            try:
                self.monitor.send(PACKET)
                count += 1
                turns = 0
            except BlockingIOError:
                turns += 1
            await asyncio.sleep(0)
        return count


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    near, monitor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setblocking(False)
    monitor.setblocking(False)
    with near, monitor, subprocess.Popen(["sleep", "1000"]) as container:
        yield Bed(near, monitor, container)
        container.kill()


def source(outputs: Outputs, number: int = STDOUT) -> ByteSource:
    found = outputs.stream(number)
    assert found
    return found


async def test_packets_are_sorted_by_their_first_byte(bed: Bed) -> None:
    outputs = bed.outputs(stdout=True, stderr=True)
    for packet in (b"\x02out", b"\x03err", b"\x02put", b"\x02", b"\x07?"):
        bed.monitor.send(packet)
    bed.monitor.close()
    assert await source(outputs).read(4) == b"outp"
    assert await source(outputs).read(100) == b"ut"
    assert await source(outputs, STDERR).read(100) == b"err"
    assert await source(outputs).read(100) == await source(outputs, STDERR).read(100) == b""
    outputs.close()


async def test_what_arrived_together_is_read_together(bed: Bed) -> None:
    outputs = bed.outputs(stdout=True)
    for packet in (b"\x02one", b"\x02two", b"\x02three"):
        bed.monitor.send(packet)
    for _ in range(3):
        await asyncio.sleep(0)
    assert await source(outputs).read(8) == b"onetwoth"
    assert await source(outputs).read(8) == b"ree"
    outputs.close()


async def test_what_was_not_asked_for_is_dropped(bed: Bed) -> None:
    outputs = bed.outputs(stderr=True)
    assert outputs.stream(STDOUT) is None
    assert await bed_takes(bed, 1000)
    assert bed.outputs(stdout=True, stderr=True, terminal=True).stream(STDERR) is None
    outputs.close()


async def bed_takes(bed: Bed, packets: int) -> bool:
    for _ in range(packets):
        while True:
            try:
                bed.monitor.send(PACKET)
                break
            except BlockingIOError:
                await asyncio.sleep(0)
    return True


async def test_the_monitor_waits_for_a_reader_and_loses_nothing(bed: Bed) -> None:
    outputs = bed.outputs(stdout=True)
    sent = await bed.fill()
    again = 0
    got = 0
    for _ in range(50):
        got += len(await source(outputs).read(5000))
        again += await bed.fill()
    assert again > 0
    bed.monitor.close()
    while data := await source(outputs).read(100_000):
        got += len(data)
    assert got == (sent + again) * 8192
    outputs.close()


async def test_a_reader_that_waits_is_woken_by_the_close(bed: Bed) -> None:
    outputs = bed.outputs(stdout=True)
    reading = asyncio.ensure_future(source(outputs).read(10))
    for _ in range(3):
        await asyncio.sleep(0)
    outputs.close()
    outputs.close()
    assert await reading == b""


async def test_a_cancelled_read_loses_nothing(bed: Bed) -> None:
    outputs = bed.outputs(stdout=True)
    reading = asyncio.ensure_future(source(outputs).read(10))
    for _ in range(3):
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    bed.monitor.send(b"\x02late")
    assert await source(outputs).read(10) == b"late"
    outputs.close()


async def test_who_reads_nothing_is_given_up(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_output, "LOOK_SECONDS", 0.0)
    outputs = bed.outputs(stdout=True, stall_seconds=0.0)
    with pytest.raises(BrokenPipeError):
        while True:
            await bed.fill()
    for _ in range(2):
        with pytest.raises(ResourceExhausted, match="nothing was read for 0 s"):
            await source(outputs).read(10)
    bed.near.send(b"input goes on")
    outputs.close()


async def test_the_end_of_the_container_is_not_held_up(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_output, "LOOK_SECONDS", 0.0)
    outputs = bed.outputs(stdout=True, buffer_bytes=3 * 8192)
    sent = await bed.fill()
    bed.container.kill()
    bed.container.wait()
    more = 0
    while more < 3:  # as much again as it would hold
        more += await bed.fill()
    bed.monitor.close()
    got = 0
    while data := await source(outputs).read(100_000):
        got += len(data)
    assert got == (sent + more) * 8192
    outputs.close()
