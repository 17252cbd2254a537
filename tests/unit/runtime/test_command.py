"""The start and the end of commands, with a simulated runtime: commands are plain processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import pidfd, process
from isulad_py.host.spawn import spawn
from isulad_py.model.errors import HostFailure, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.runtime.command import Commands, Order, Stdio, name_of
from tests.fakes.oci_programs import SimulatedPrograms, launch


async def no_words() -> bytes:
    return b""


SILENT = Stdio(fds=(subprocess.DEVNULL,) * 3, release=lambda: None, words=no_words)


@dataclass
class Bed:
    commands: Commands
    id: ContainerId
    bundle: Path

    def order(self, *args: str, handler: str = "runc") -> Order:
        return Order(id=self.id, handler=handler, process=json.dumps({"args": args}).encode())


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    runtime = SimulatedPrograms(tmp_path).adapter()
    wanted = launch(["sleep", "1000"])
    await runtime.create(wanted)
    await runtime.start(wanted.id, "runc")
    made = Bed(runtime._commands, wanted.id, tmp_path / "state/containers" / wanted.id)
    before = sorted(path.name for path in made.bundle.iterdir())
    yield made
    assert sorted(path.name for path in made.bundle.iterdir()) == before
    assert made.commands._pid_files == set()
    await runtime.delete(wanted.id, "runc")


def unique_seconds() -> str:
    return str(10**6 + int.from_bytes(os.urandom(4)))


async def test_the_exit_code_is_told_and_told_again(bed: Bed) -> None:
    for script, code in (("exit 3", 3), ("kill -9 $$", 137), ("true", 0)):
        async with bed.commands.started(bed.order("sh", "-c", script), SILENT) as running:
            assert await running.wait() == code
            assert running.ended
            assert await running.wait() == code


async def test_a_wait_can_be_cancelled(bed: Bed) -> None:
    async with bed.commands.started(bed.order("sleep", "1000"), SILENT) as running:
        waiting = asyncio.ensure_future(running.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not running.ended


async def test_what_still_runs_is_ended_when_it_is_left(bed: Bed) -> None:
    seconds = unique_seconds()
    async with bed.commands.started(bed.order("sh", "-c", f"sleep {seconds} & sleep {seconds}"), SILENT):
        while len(pidfd.find_by_arguments(["sleep", seconds])) < 2:
            await asyncio.sleep(0)
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_one_that_goes_on_making_processes_is_ended_whole(bed: Bed) -> None:
    seconds = unique_seconds()
    script = f"i=0; while [ $i -lt 300 ]; do sleep {seconds} & i=$((i+1)); done; wait"
    async with bed.commands.started(bed.order("sh", "-c", script), SILENT):
        while not pidfd.find_by_arguments(["sleep", seconds]):
            await asyncio.sleep(0)
    assert pidfd.find_by_arguments([seconds, "sleep"]) == pidfd.find_by_arguments([script]) == {}


async def test_what_a_command_left_behind_may_stay(bed: Bed) -> None:
    seconds = unique_seconds()
    script = f"sleep {seconds} >/dev/null 2>&1 & exit 0"
    async with bed.commands.started(bed.order("sh", "-c", script), SILENT) as running:
        assert await running.wait() == 0
    while not (left := pidfd.find_by_arguments(["sleep", seconds])):  # it may not have become sleep yet
        await asyncio.sleep(0)
    assert len(left) == 1
    for pid, started in left.items():
        pidfd.send(pid, started, signal.SIGKILL)
        await pidfd.wait_end(pid, started)


async def test_an_error_of_the_caller_ends_it_too(bed: Bed) -> None:
    seconds = unique_seconds()
    with pytest.raises(ZeroDivisionError):
        async with bed.commands.started(bed.order("sleep", seconds), SILENT):
            raise ZeroDivisionError
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_a_start_that_a_busy_loop_hears_of_too_late(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs and the runtime has left when the cancellation is seen."""
    seconds = unique_seconds()
    heard = threading.Event()
    running: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def spawn_late(*args: Any, **kwargs: Any) -> int:
        pid = spawn(*args, **kwargs)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        running.get_loop().call_soon_threadsafe(running.set_result, None)
        heard.wait()
        return pid

    monkeypatch.setattr(process, "spawn", spawn_late)
    execution = asyncio.ensure_future(bed.commands.started(bed.order("sleep", seconds), SILENT).__aenter__())
    await running
    assert pidfd.find_by_arguments(["sleep", seconds])
    execution.cancel()
    asyncio.get_running_loop().call_soon(heard.set)
    with pytest.raises(asyncio.CancelledError):
        await execution
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_a_start_that_fails_for_one_who_has_gone(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_args: object, **_options: object) -> process.Child:
        execution.cancel()
        await asyncio.sleep(0)
        raise HostFailure("cannot start it")

    monkeypatch.setattr(process, "start", fail)
    execution = asyncio.ensure_future(bed.commands.started(bed.order("true"), SILENT).__aenter__())
    with pytest.raises(asyncio.CancelledError):
        await execution


async def test_the_callers_ends_are_released_before_the_wait(bed: Bed) -> None:
    reading, writing = os.pipe()
    stdio = Stdio(fds=(subprocess.DEVNULL, writing, writing), release=lambda: os.close(writing), words=no_words)
    async with bed.commands.started(bed.order("echo", "said"), stdio) as running:
        await running.wait()
        assert os.read(reading, 100) + os.read(reading, 100) == b"said\n"
    os.close(reading)


async def test_why_a_command_does_not_run(bed: Bed) -> None:
    with pytest.raises(InvalidInput, match=r"exec missing: .*not found"):
        async with bed.commands.started(bed.order("missing"), SILENT):
            pass
    with pytest.raises(InvalidInput, match="nobody"):
        async with bed.commands.started(bed.order("true", handler="nobody"), SILENT):
            pass
    unknown = Order(id=ContainerId(new_id()), handler="runc", process=b"{}")
    with pytest.raises(NotFound):
        async with bed.commands.started(unknown, SILENT):
            pass


async def test_a_runtime_without_a_log_is_heard_on_stderr(bed: Bed, tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("#!/bin/sh\nexit 5\n")

    async def words() -> bytes:
        return b"out of wits"

    stdio = Stdio(fds=(subprocess.DEVNULL,) * 3, release=lambda: None, words=words)
    with pytest.raises(HostFailure, match="exec true: out of wits"):
        async with bed.commands.started(bed.order("true"), stdio):
            pass
    with pytest.raises(HostFailure, match="exited with 5"):
        async with bed.commands.started(bed.order("true"), SILENT):
            pass
    SimulatedPrograms(tmp_path)


@pytest.mark.parametrize("document", [b"{}", b"no json", b'{"args": 5}', b"\xff"])
def test_a_document_without_a_program(document: bytes) -> None:
    assert name_of(document) == "without a program"
