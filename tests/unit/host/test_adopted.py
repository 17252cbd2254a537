"""Orphans that become our children."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from isulad_py.host import adopted, pidfd
from isulad_py.model.errors import HostFailure


def orphan(script: str) -> int:
    """The number of a process whose parent has left it."""
    adopted.accept_orphans()
    reading, writing = os.pipe()
    # It begins when its parent is gone: a shell that still runs would reap it itself. By a descriptor of its own, since
    # the stdin of what a shell puts into the background is /dev/null.
    shell = ["sh", "-c", f"exec 3<&0; sh -c 'read line <&3; {script}' >/dev/null & echo $!"]
    try:
        return int(subprocess.run(shell, stdin=reading, stdout=subprocess.PIPE, check=True).stdout)
    finally:
        os.close(reading)
        os.close(writing)


async def test_its_exit_status_is_told_every_time() -> None:
    child = adopted.Adopted(orphan("exit 7"))
    assert await child.wait() == 7
    assert await child.wait() == 7
    assert child.returncode == 7
    child.signal(signal.SIGKILL)
    assert pidfd.zombie_since(child.pid) == 0


async def test_it_can_be_ended() -> None:
    child = adopted.Adopted(orphan("exec sleep 1000"))
    assert child.returncode is None
    child.signal(signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL


async def test_only_children_can_be_adopted() -> None:
    with pytest.raises(HostFailure, match="not a child"):
        adopted.Adopted(os.getppid())
    with pytest.raises(HostFailure, match="adopt process"):
        adopted.Adopted(2**22 + 1)


def test_a_stray_is_reaped_at_the_second_sweep_and_no_sooner() -> None:
    now = 0.0
    strays = adopted.Strays(monotonic=lambda: now)
    pid = orphan("exit 0")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    strays.sweep()
    strays.sweep()
    assert pidfd.zombie_since(pid)
    now += adopted.SWEEP_SECONDS
    strays.sweep()
    assert not pidfd.zombie_since(pid)


def test_zombies_of_this_pid_namespace_are_left_to_the_sweep() -> None:
    pid = orphan("exit 0")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    adopted.reap_foreign(set())
    assert pidfd.zombie_since(pid)
    pidfd.reap(pid, pidfd.zombie_since(pid))
    assert not pidfd.zombie_since(pid)


@pytest.mark.root
@pytest.mark.parametrize("spared", [False, True])
def test_a_zombie_of_another_pid_namespace_is_reaped_unless_spared(*, spared: bool) -> None:
    adopted.accept_orphans()
    before = set(pidfd.children(os.getpid()))
    subprocess.run(["unshare", "--pid", "sh", "-c", "true >/dev/null &"], check=True)
    (pid,) = set(pidfd.children(os.getpid())) - before
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    adopted.reap_foreign({pid} if spared else set())
    assert bool(pidfd.zombie_since(pid)) is spared
    pidfd.reap(pid, pidfd.zombie_since(pid))


async def test_the_wait_for_an_orphan_reaps_it() -> None:
    pid = orphan("exec sleep 1000")
    started = pidfd.start_time(pid)
    os.kill(pid, signal.SIGKILL)
    await pidfd.wait_end(pid, started)
    await pidfd.wait_end(pid, started)
    assert pidfd.zombie_since(pid) == 0
