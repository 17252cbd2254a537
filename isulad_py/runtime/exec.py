"""Commands in running containers, by the runtime's `exec` and without a monitor: they end with their caller.

The process document and the runtime's log are memory files that the runtime opens through /proc/self/fd: nothing is
written to disk, nothing can be left there. The log tells the runtime's failures from the command's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from isulad_py.host import blocking, pidfd, process
from isulad_py.host.failures import translated
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import DeadlineExceeded
from isulad_py.model.ids import ContainerId
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import ExecCommand, ExecResult
from isulad_py.runtime import members, runc
from isulad_py.runtime.bundle import Bundles
from isulad_py.runtime.programs import Programs

log = structlog.get_logger(__name__)

OUTPUT_LIMIT: Final = 16 * 1024 * 1024
"""Of each stream (CRI, ExecSync, as containerd and CRI-O have it)."""
LOG_LIMIT: Final = 64 * 1024
END_ROUNDS: Final = 150
ROUND_SECONDS: Final = 0.02
PATIENT_ROUNDS: Final = 100
"""How long the runtime may take to reap its killed command and end by itself: else the command stays a zombie in the
container until its first process cares."""


class Prepared(Struct, frozen=True, kw_only=True):
    """One command ready to be started, on whatever stdio the caller has."""

    argv: tuple[str, ...]
    pass_fds: tuple[int, ...]
    log_fd: int
    group: members.ExecGroup | None

    def failure(self) -> str:
        """What the runtime says why the command was not run; empty where it was."""
        said = os.pread(self.log_fd, LOG_LIMIT, 0)
        return runc.error_of(said) if runc.has_error(said) else ""

    async def end(self, child: process.Child) -> None:
        """Ends the whole tree: the command, all that it started, and the runtime, which reaps it."""
        for turn in range(END_ROUNDS):
            running = child.returncode is None
            left = await blocking.run(self._kill_tree, child.pid if running else 0)
            if not running and not left:
                return
            if running and (not left or turn > PATIENT_ROUNDS):
                child.signal(signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ROUND_SECONDS):
                    await child.wait()
        log.warning("processes of an exec still run after SIGKILL", pid=child.pid, left=left)

    def _kill_tree(self, pid: int) -> int:
        """How many there were, those that are dead and not yet reaped included."""
        left = self.group.kill() if self.group else 0
        if pid:
            for below, started in pidfd.stop_descendants(pid).items():
                pidfd.send(below, started, signal.SIGKILL)
                left += 1
        return left


class Execs:
    def __init__(self, *, programs: Programs, bundles: Bundles, clock: Clock) -> None:
        self._programs = programs
        self._bundles = bundles
        self._clock = clock

    async def run(self, command: ExecCommand) -> ExecResult:
        """The command's output and exit code, 128+n where a signal ended it.

        Raises what the runtime says where the command cannot be run, DeadlineExceeded when its time is over and its
        processes have ended.
        """
        async with self.prepared(command.id, command.handler, command.process) as ready:
            start = process.Command(
                argv=ready.argv,
                pass_fds=ready.pass_fds,
                timeout_seconds=command.timeout_seconds,
                limit_bytes=OUTPUT_LIMIT,
            )
            try:
                done = await process.run(start, end=ready.end)
            except DeadlineExceeded as error:
                name = _name(command.process)
                raise DeadlineExceeded(f"exec {name}: no end within {command.timeout_seconds:g} s; killed") from error
            if message := ready.failure():
                raise runc.failure(f"exec {_name(command.process)}", message)
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return ExecResult(exit_code=code, stdout=done.stdout, stderr=done.stderr)

    @contextlib.asynccontextmanager
    async def prepared(self, container_id: ContainerId, handler: str, document: bytes) -> AsyncIterator[Prepared]:
        """Everything that an exec needs but its stdio; gone at the end, the cgroup of its processes included."""
        launched = await blocking.run(self._bundles.record, container_id)
        group = members.ExecGroup.below(launched.cgroups, launched.family, f"exec-{secrets.token_hex(6)}")
        with contextlib.ExitStack() as stack:
            with translated("prepare exec"):
                process_fd = _memory_file(stack, document)
                log_fd = _memory_file(stack, b"")
            path = self._programs.path(handler)
            global_args = self._programs.global_args(handler, _opened(log_fd))
            try:
                if group is not None and not await to_the_end(blocking.run(group.make), name="make an exec's cgroup"):
                    group = None
                cgroup = group.argument if group else ""
                words = runc.exec_args(container_id, _opened(process_fd), cgroup=cgroup)
                yield Prepared(
                    argv=(path, *global_args, *words), pass_fds=(process_fd, log_fd), log_fd=log_fd, group=group
                )
            finally:
                if group is not None:
                    await to_the_end(blocking.run(group.dissolve), name="remove an exec's cgroup")


def _memory_file(stack: contextlib.ExitStack, data: bytes) -> int:
    fd = os.memfd_create("exec")
    stack.callback(os.close, fd)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return fd


def _opened(fd: int) -> str:
    """A name under which a process that has inherited the descriptor can open the file anew."""
    return f"/proc/self/fd/{fd}"


class _Process(Struct):
    args: list[str] = []


def _name(document: bytes) -> str:
    """The program that was asked for, for messages."""
    try:
        args = msgspec.json.decode(document, type=_Process).args
    except (msgspec.DecodeError, UnicodeError):
        args = []
    return args[0] if args else "without a program"
