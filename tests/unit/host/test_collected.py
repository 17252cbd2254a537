"""Outputs collected whole. Pipes are real; nobody has to be a program."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from isulad_py.host import collected as module
from isulad_py.host.collected import collected


async def test_both_are_kept_up_to_the_limit() -> None:
    with collected(4) as output:
        out, err = output.fds
        os.write(out, b"0123456789")
        os.write(err, b"err")
        output.release()
        output.release()
        await output.drain()
        assert (output.stdout(), output.stderr(), output.truncated) == (b"0123", b"err", True)


async def test_who_keeps_a_pipe_open_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEFT_OPEN_SECONDS", 0.0)
    with collected(100) as output:
        kept = os.dup(output.fds[0])
        os.write(kept, b"said before")
        output.release()
        await output.drain()
        await output.drain()
        assert output.stdout() == b"said before"
        os.close(kept)


async def test_a_writer_that_goes_on_does_not_hold_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEFT_OPEN_SECONDS", 0.0)
    with collected(10**9) as output:
        zero = os.open("/dev/zero", os.O_RDONLY)
        os.dup2(zero, output._out._fd)
        os.close(zero)
        await output.drain()
        assert 0 < len(output.stdout()) < 10**8


async def test_no_descriptor_is_left() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with collected(10):
        await asyncio.sleep(0)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
