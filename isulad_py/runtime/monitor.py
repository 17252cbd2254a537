"""conmon, the monitor that each container has: how it is started, and what it reports.

conmon(8) forks once, then runs the OCI runtime's `create`, owns the container's stdio, and writes the exit code when
the container has ended. It belongs to nobody: it leads its own session, its stdio is its own, it outlives this daemon.
It reads one byte from _OCI_STARTPIPE before it forks, and tells the container's first process through _OCI_SYNCPIPE,
as one line of JSON: {"pid": 1234}, or {"pid": -1, "message": "the runtime's stderr"}.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from isulad_py.host import process
from isulad_py.host.failures import translated
from isulad_py.model.errors import EngineError, HostFailure
from isulad_py.ports.runtime import Launch
from isulad_py.runtime import runc

_LINE_LIMIT: Final = 64 * 1024
_WORDS_LIMIT: Final = 4096


class Files(Struct, frozen=True, kw_only=True):
    """Paths that the monitor is told."""

    bundle: str
    pid_file: str
    monitor_pid_file: str
    log: str
    """Its --log-path."""


def arguments(launch: Launch, files: Files, runtime: list[str]) -> list[str]:
    """Everything behind the monitor's own name. `runtime`: the program with what stands before its command."""
    args = ["--cid", launch.id]
    args += ["--cuuid", launch.id]
    args += ["--runtime", runtime[0]]
    args += runc.monitor_runtime_args(runtime[1:])
    args += ["--bundle", files.bundle]
    args += ["--persist-dir", files.bundle]
    args += ["--container-pidfile", files.pid_file]
    args += ["--conmon-pidfile", files.monitor_pid_file]
    args += ["--log-path", files.log]
    # Else the socket's directory is found through a symbolic link whose name is cut at 107 bytes.
    args += ["--full-attach"]
    # An fsync for each container that ends would only protect the last lines from a loss of power, and delay the exit.
    args += ["--no-sync-log"]
    if launch.terminal:
        args += ["--terminal"]
    elif launch.stdin:
        args += ["--stdin"]
        if not launch.stdin_once:
            args += ["--leave-stdin-open"]
    if launch.restore:
        args += ["--restore", launch.restore]
    return args


ENVIRONMENT: Final = {
    # The terminal's socket is made there, and its name may have 107 bytes.
    "TMPDIR": "/proc/self/cwd",
    # GLib refuses an argument that has other characters than the locale's.
    "LC_CTYPE": "C.UTF-8",
}


_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})


class _Report(Struct):
    pid: int
    message: str = ""


def parse_report(line: bytes, spec: bytes = b"") -> int:
    """The number of the container's first process. Raises what the runtime said where there is none."""
    text = line.decode(errors="replace")
    try:
        report = msgspec.json.decode(text, type=_Report)
    except msgspec.DecodeError as error:
        raise HostFailure(f"create: the monitor reported {text[:200]!r}") from error
    if report.pid > 0:
        return report.pid
    words = runc.error_of(report.message.encode(errors="replace"))
    raise runc.failure("create", words, program=runc.program_of(spec))


async def start(
    argv: list[str],
    *,
    bundle: str,
    place: Callable[[int], Awaitable[None]],
    spec: bytes = b"",
    env: Mapping[str, str] = _NOTHING_MORE,
) -> int:
    """Starts the monitor and returns the number of the container's first process.

    `place` is called with the monitor's number before it does anything. `env` is for the runtime, beside ENVIRONMENT.
    Raises the runtime's own words, with the program of `spec` where they name none. The caller sets the deadline; when
    it is cancelled, what has been started must be removed by the files in the bundle.
    """
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as monitors:
        with translated("start the monitor"):
            words = _memory_file(ours)
            report, sync = os.pipe()
            ours.callback(os.close, report)
            monitors.callback(os.close, sync)
            gate, start_gate = _gate(ours, monitors)
        child = await process.start(
            argv,
            stdio=(subprocess.DEVNULL, subprocess.DEVNULL, words),
            env={"_OCI_SYNCPIPE": str(sync), "_OCI_STARTPIPE": str(start_gate), **ENVIRONMENT, **env},
            cwd=bundle,
            pass_fds=(sync, start_gate),
            new_session=True,
        )
        monitors.close()
        try:
            await place(child.pid)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                gate.send(b"\0")
            line = await _first_line(report)
            status = await child.wait()
        except BaseException:
            child.signal(signal.SIGKILL)
            await child.wait()
            raise
        if line:
            return parse_report(line, spec)
        raise _silence(status, os.pread(words, _WORDS_LIMIT, 0))


def _memory_file(stack: contextlib.ExitStack) -> int:
    """For what it says before it has a log of its own (wrong options): never blocks, leaves no file."""
    fd = os.memfd_create("monitor")
    stack.callback(os.close, fd)
    return fd


def _gate(ours: contextlib.ExitStack, monitors: contextlib.ExitStack) -> tuple[socket.socket, int]:
    """Both ends of _OCI_STARTPIPE. Should this daemon die before it opens the gate, the monitor must not go on: at the
    end of a pipe it would. A socket whose peer is closed with something unread in it gives an error instead
    (ECONNRESET), and at an error the monitor exits."""
    gate, theirs = socket.socketpair()
    ours.callback(gate.close)
    monitors.callback(theirs.close)
    theirs.send(b"\0")
    return gate, theirs.fileno()


async def _first_line(fd: int) -> bytes:
    """Up to a newline or the end; empty where the writer has gone without a word."""
    os.set_blocking(fd, False)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    data = bytearray()

    def on_ready() -> None:
        try:
            part = os.read(fd, _LINE_LIMIT)
        except BlockingIOError:
            return
        data.extend(part)
        if (not part or b"\n" in part or len(data) >= _LINE_LIMIT) and not done.done():
            loop.remove_reader(fd)
            done.set_result(None)

    loop.add_reader(fd, on_ready)
    try:
        await done
    finally:
        loop.remove_reader(fd)
    return bytes(data).partition(b"\n")[0]


def _silence(status: int, words: bytes) -> EngineError:
    text = words.decode(errors="replace").strip()
    return HostFailure(f"create: the monitor ended without a report (exit status {status}): {text or 'no word'}")
