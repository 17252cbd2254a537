from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from isulad_py.host import kernel_log

KILL = (
    "6,73198,13311914124,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,"
    "oom_memcg=/pods/{0},task_memcg=/pods/{0}/own,task=dd,pid=21583,uid=0\n"
)
OTHER = "6,1,2,-;usb 1-1: new device task_memcg=/pods/no,\n SUBSYSTEM=usb\n DEVICE=+usb:1-1\n"
GLOBAL = (
    "6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/pods/g,task=x,pid=1,uid=0\n"
)


def test_records_of_kills_name_the_cgroup_of_who_died(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(OTHER + KILL.format("a") + GLOBAL + KILL.format("b"))
    assert kernel_log.cgroups_short_of_memory(str(log)) == {"/pods/a/own", "/pods/g", "/pods/b/own"}


def test_a_log_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    assert kernel_log.cgroups_short_of_memory(str(tmp_path / "none")) == frozenset()


def test_a_message_of_a_program_is_not_the_kernels(tmp_path: Path) -> None:
    """A program's words have its facility, whatever they are."""
    (tmp_path / "kmsg").write_text("12,1,2,-;sshd: user oom-kill:a,task_memcg=/pods/a,\n1" + KILL.format("b"))
    assert kernel_log.cgroups_short_of_memory(str(tmp_path / "kmsg")) == frozenset()


def test_lost_records_are_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each read is one record, the log is read to its end, and what was overwritten meanwhile is told by EPIPE."""
    (tmp_path / "kmsg").touch()
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        here.setblocking(False)
        for name in ("a", "b"):
            there.send(KILL.format(name).encode())
        answers = iter([BrokenPipeError()])

        def read(_log: int, size: int) -> bytes:
            for error in answers:
                raise error
            return here.recv(size)

        monkeypatch.setattr(os, "read", read)
        found = kernel_log.cgroups_short_of_memory(str(tmp_path / "kmsg"))
    assert found == {"/pods/a/own", "/pods/b/own"}


@pytest.mark.skipif(not os.access(kernel_log.KMSG, os.R_OK), reason="the kernel's log may not be read")
def test_the_real_log_has_an_end() -> None:
    assert isinstance(kernel_log.cgroups_short_of_memory(), frozenset)
