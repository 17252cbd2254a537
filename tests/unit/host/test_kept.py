"""Connections kept open for as long as a process lives."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path

from isulad_py.host import pidfd
from isulad_py.host.kept import KeptOpen


def is_open(far: socket.socket) -> bool:
    far.setblocking(False)
    try:
        return far.recv(1) != b""
    except BlockingIOError:
        return True


async def test_they_are_closed_when_the_process_has_ended() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = KeptOpen()
    with subprocess.Popen(["sleep", "1000"]) as process:
        key = (process.pid, pidfd.start_time(process.pid))
        pairs = [socket.socketpair() for _ in range(2)]
        for near, _ in pairs:
            kept.add(near, *key)
        assert kept.count(*key) == 2
        assert all(is_open(far) for _, far in pairs)
        process.kill()
    while kept.count(*key):
        await asyncio.sleep(0)
    for _, far in pairs:
        assert not is_open(far)
        far.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_one_for_a_process_that_has_ended_is_closed_at_once() -> None:
    kept = KeptOpen()
    near, far = socket.socketpair()
    kept.add(near, 0, 0)
    assert not is_open(far)
    far.close()


async def test_all_are_closed_together() -> None:
    kept = KeptOpen()
    with subprocess.Popen(["sleep", "1000"]) as process:
        near, far = socket.socketpair()
        kept.add(near, process.pid, pidfd.start_time(process.pid))
        kept.close()
        assert not is_open(far)
        far.close()
        process.kill()
