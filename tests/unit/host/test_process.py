from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from isulad_py.host import pidfd, process
from isulad_py.host.process import Command, run
from isulad_py.model.errors import DeadlineExceeded, HostFailure


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def children() -> set[str]:
    """Of every thread: the kernel counts a child as its maker's."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


async def test_output_input_and_exit_status() -> None:
    done = await run(Command(argv=("sh", "-c", "cat; echo err >&2; exit 3"), stdin=b"in\0put"))
    assert (done.returncode, done.stdout, done.stderr, done.truncated) == (3, b"in\0put", b"err\n", False)
    with pytest.raises(HostFailure, match="do it: sh exited with 3: err"):
        done.check("do it")
    assert (await run(Command(argv=("true",)))).check("do it").returncode == 0


async def test_a_signal_is_a_negative_status() -> None:
    assert (await run(Command(argv=("sh", "-c", "kill -9 $$")))).returncode == -signal.SIGKILL


async def test_nothing_of_ours_is_in_the_environment() -> None:
    done = await run(Command(argv=("env",), env={"A": "1"}))
    assert sorted(done.stdout.decode().split()) == ["A=1", f"PATH={process.PATH}"]


async def test_large_input_and_output_pass_each_other() -> None:
    data = os.urandom(1 << 20) * 4
    done = await run(Command(argv=("cat",), stdin=data, limit_bytes=len(data)))
    assert done.stdout == data


async def test_what_is_over_the_limit_is_dropped_and_the_program_ends() -> None:
    done = await run(Command(argv=("head", "-c", "3000000", "/dev/zero"), limit_bytes=1000))
    assert (done.returncode, done.stdout, done.truncated) == (0, bytes(1000), True)


async def test_a_deadline_ends_the_whole_group() -> None:
    seconds = f"987.{int.from_bytes(os.urandom(4))}"  # ours alone, whoever else runs tests here
    command = Command(
        argv=("sh", "-c", f"trap '' TERM; sleep {seconds} & sleep {seconds}; sleep {seconds}"),
        timeout_seconds=0.2,
        grace_seconds=0.1,
        new_session=True,
    )
    with pytest.raises(DeadlineExceeded):
        await run(command)
    # What is killed with its group is reaped by others, and on a busy machine still on its way out.
    while pidfd.find_by_arguments(["sleep", seconds]):
        await asyncio.sleep(0)


async def test_a_cancelled_caller_leaves_no_process_and_no_descriptor() -> None:
    before, kids = descriptors(), children()
    running = asyncio.get_running_loop().create_task(run(Command(argv=("sleep", "1000"), grace_seconds=1)))
    while children() == kids:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert children() == kids
    assert descriptors() == before


async def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    before, kids = descriptors(), children()
    for turns in range(4):
        starting = asyncio.get_running_loop().create_task(process.start(("sleep", "1000")))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        try:
            child = await starting
        except asyncio.CancelledError:
            pass
        else:
            await child.end(1)
    assert children() == kids
    assert descriptors() == before


async def test_what_cannot_be_started_says_why_and_leaks_nothing() -> None:
    before = descriptors()
    with pytest.raises(HostFailure, match="no-such-program: no such program"):
        await run(Command(argv=("no-such-program",), stdin=b"x"))
    with pytest.raises(HostFailure, match="NUL"):
        await run(Command(argv=("echo", "\0")))
    assert descriptors() == before


async def test_an_output_that_a_grandchild_keeps_open_is_not_waited_for() -> None:
    done = await run(Command(argv=("sh", "-c", "echo out; sleep 5 &"), new_session=True))
    assert done.stdout == b"out\n"


async def test_many_at_once() -> None:
    before = descriptors()
    outputs = await asyncio.gather(*(run(Command(argv=("echo", str(i)))) for i in range(50)))
    assert [int(done.stdout) for done in outputs] == list(range(50))
    assert descriptors() == before
