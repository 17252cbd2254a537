"""Processes by number and start time. Real ones, our own children: the kernel is the point here."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host import pidfd


def descriptors() -> set[str]:
    """The pidfds this process holds."""
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return {link for link in links if "pidfd" in link}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_a_running_process_has_a_start_time_and_is_alive(sleeper: subprocess.Popen[bytes]) -> None:
    started = pidfd.start_time(sleeper.pid)
    assert started > 0
    assert pidfd.alive(sleeper.pid, started)
    assert not pidfd.alive(sleeper.pid, started + 1)


def test_sessions(sleeper: subprocess.Popen[bytes]) -> None:
    assert pidfd.session(sleeper.pid) == os.getsid(0)
    assert pidfd.session(2**22 + 1) == 0


def test_nothing_is_no_process() -> None:
    assert pidfd.start_time(0) == 0
    assert not pidfd.alive(0, 0)
    assert not pidfd.alive(os.getpid(), 0)


def test_a_zombie_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    started = pidfd.start_time(sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert pidfd.start_time(sleeper.pid) == 0
    assert not pidfd.alive(sleeper.pid, started)


def test_another_process_with_the_same_number_gets_no_signal(sleeper: subprocess.Popen[bytes]) -> None:
    assert not pidfd.send(sleeper.pid, pidfd.start_time(sleeper.pid) + 1, signal.SIGKILL)
    assert sleeper.poll() is None


def test_the_leader_of_a_group_that_outlives_it_is_gone() -> None:
    argv = ["sh", "-c", "sleep 1000 & echo $!"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as leader:
        assert leader.stdout is not None
        started = pidfd.start_time(leader.pid)
        member = int(leader.stdout.readline())
        leader.wait()
        try:
            assert not pidfd.alive(leader.pid, started)
            assert not pidfd.send(leader.pid, started, signal.SIGKILL)
        finally:
            os.kill(member, signal.SIGKILL)


def test_so_it_is_where_the_kernel_calls_it_no_number_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux before 6.15 has EINVAL for it."""

    def refuse(_pid: int) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert not pidfd.send(os.getpid(), pidfd.start_time(os.getpid()), 0)


def test_a_signal_arrives_once(sleeper: subprocess.Popen[bytes]) -> None:
    started = pidfd.start_time(sleeper.pid)
    assert pidfd.send(sleeper.pid, started, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert not pidfd.send(sleeper.pid, started, signal.SIGTERM)


async def test_the_end_is_awaited(sleeper: subprocess.Popen[bytes]) -> None:
    started = pidfd.start_time(sleeper.pid)
    waiting = asyncio.ensure_future(pidfd.wait_end(sleeper.pid, started))
    await asyncio.sleep(0)
    assert not waiting.done()
    sleeper.kill()
    await waiting
    await pidfd.wait_end(sleeper.pid, started)


@pytest.fixture
def held() -> Iterator[tuple[int, int]]:
    """A forked process, and what it waits for before it executes a program: a byte. Without one it ends."""
    gate, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        if os.read(gate, 1):
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
    os.close(gate)
    yield pid, ours
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ours)


async def test_a_program_of_its_own_is_awaited(held: tuple[int, int]) -> None:
    pid, gate = held
    started = pidfd.start_time(pid)
    waiting = asyncio.ensure_future(pidfd.wait_program(pid, started))
    await asyncio.wait([waiting], timeout=pidfd.LONGEST_LOOK_SECONDS * 3)
    assert not waiting.done()
    assert pidfd.runs_its_parents_program(pid, started)
    os.write(gate, b"go")
    await waiting
    assert not pidfd.runs_its_parents_program(pid, started)
    assert pidfd.alive(pid, started)
    await pidfd.wait_program(pid, started)


async def test_one_that_ends_instead_is_not_waited_for(held: tuple[int, int]) -> None:
    pid, _ = held
    waiting = asyncio.ensure_future(pidfd.wait_program(pid, pidfd.start_time(pid)))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    await waiting
    await pidfd.wait_program(pid, 1)


async def test_a_wait_can_be_cancelled_and_leaves_no_descriptor(sleeper: subprocess.Popen[bytes]) -> None:
    before = descriptors()
    waiting = asyncio.ensure_future(pidfd.wait_end(sleeper.pid, pidfd.start_time(sleeper.pid)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert descriptors() <= before


def test_descendants_are_found_stopped_and_found_by_their_arguments() -> None:
    mark = f"31{os.getpid()}.5"
    with subprocess.Popen(["sh", "-c", f"sleep {mark} & sleep {mark}; wait"], stdout=subprocess.PIPE) as shell:
        while len(pidfd.descendants(shell.pid)) < 2:
            os.sched_yield()
        try:
            below = pidfd.descendants(shell.pid)
            assert set(pidfd.stop_descendants(shell.pid)) == set(below)
            assert set(pidfd.find_by_arguments(["sleep", mark])) <= set(below)
        finally:
            for pid in below:
                os.kill(pid, signal.SIGKILL)
    assert pidfd.descendants(shell.pid) == []
