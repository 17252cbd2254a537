"""The start and the end of commands in running containers, by the runtime's `exec --detach` and without a monitor.

The runtime leaves once the command runs. The command has the caller's pipes or terminal itself and becomes this
daemon's child (see `host.adopted`): its exit code is known although something it left behind keeps the pipes open, for
which a runtime that stays waits (runc copies the output). The process document and the runtime's log are memory files,
opened through /proc/self/fd: the document need not be written to disk, and the log keeps out of the command's stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from isulad_py.host import adopted, blocking, descriptors, files, pidfd, process
from isulad_py.host.cgroup_moves import CgroupMoves
from isulad_py.host.failures import translated
from isulad_py.host.tasks import settled, to_the_end
from isulad_py.model.errors import EngineError, HostFailure
from isulad_py.model.ids import ContainerId
from isulad_py.ports.clock import Clock
from isulad_py.runtime import members, runc
from isulad_py.runtime.bundle import Bundles, read_number
from isulad_py.runtime.layout import EXEC_PREFIX, Layout
from isulad_py.runtime.programs import Programs

log = structlog.get_logger(__name__)

LOG_LIMIT: Final = 64 * 1024
END_ROUNDS: Final = 150
PATIENT_ROUNDS: Final = 100
"""How often the runtime is left to reap a command that it has just begun, and to end by itself."""
ROUND_SECONDS: Final = 0.02


class Order(Struct, frozen=True, kw_only=True):
    """Which command, where."""

    id: ContainerId
    handler: str
    process: bytes
    """OCI `process` object as JSON."""
    stdio_uid: int | None = None


class Stdio(Struct, frozen=True, kw_only=True):
    """What a command is started with."""

    fds: tuple[int, int, int]
    """The runtime's stdin, stdout and stderr, which the command has, too, unless it gets a terminal."""
    release: Callable[[], object]
    """Called when the runtime has them: the caller's copies must be closed for an end of input or output to be seen."""
    words: Callable[[], Awaitable[bytes]]
    """What has been said on stderr, for a runtime that fails and keeps no log."""
    options: tuple[str, ...] = ()
    """More of the runtime's `exec`."""
    pass_fds: tuple[int, ...] = ()


class Running:
    """One exec from its start to its end, on whatever stdio it was started with."""

    def __init__(self, *, name: str, log_fd: int, pid_file: str, group: members.ExecGroup | None) -> None:
        self._name = name
        self._log_fd = log_fd
        self._pid_file = pid_file
        self._group = group
        self._command: adopted.Adopted | None = None
        self._killed: dict[int, int] = {}

    async def begun(self, runtime: process.Child) -> bool:
        """Returns when the command runs, or has run already; false where the runtime has failed."""
        if await runtime.wait():
            return False
        self._command = self._adopt()
        if self._command is None:
            raise HostFailure(f"exec {self._name}: the runtime left without naming a process")
        if self._group is not None and not (self._group.argument or self._group.door):
            await blocking.run(self._group.take_in, self._command.pid)
        return True

    def failure(self, code: int, stderr: bytes) -> EngineError:
        """What the runtime says, in its log or else on stderr, why it has failed."""
        said = os.pread(self._log_fd, LOG_LIMIT, 0) or stderr
        return runc.failure(f"exec {self._name}", runc.error_of(said) or f"the runtime exited with {code}")

    @property
    def ended(self) -> bool:
        return self._command is not None and self._command.returncode is not None

    async def wait(self) -> int:
        """The command's exit code, 128+n where a signal ended it. Safe to cancel and to call again."""
        if self._command is None:
            raise HostFailure(f"exec {self._name}: it has not begun")
        code = await self._command.wait()
        return code if code >= 0 else 128 - code

    def _adopt(self) -> adopted.Adopted | None:
        """The command, once the runtime has left it to us."""
        pid = read_number(self._pid_file)
        return adopted.Adopted(pid) if pid else None

    async def end(self, runtime: process.Child) -> None:
        """Ends the whole tree: the command, all that it started, and the runtime where that is still there."""
        for turn in range(END_ROUNDS):
            if self._command is None and runtime.returncode is not None:
                with contextlib.suppress(HostFailure):
                    self._command = self._adopt()
            if self._command is not None:
                self._command.signal(signal.SIGSTOP)  # else what it starts between the look and its end is its own
            awaited = [child for child in (runtime, self._command) if child and child.returncode is None]
            left = await blocking.run(self._kill_tree, [child.pid for child in awaited])
            dying = [(pid, started) for pid, started in self._killed.items() if pidfd.alive(pid, started)]
            if not awaited and not left and not dying:
                return
            if self._command is not None:
                self._command.signal(signal.SIGKILL)
            if not left or turn > PATIENT_ROUNDS:
                runtime.signal(signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ROUND_SECONDS):
                    waits = [child.wait() for child in awaited]
                    await asyncio.gather(*waits, *(pidfd.wait_end(pid, started) for pid, started in dying))
        log.warning("processes of an exec still run after SIGKILL", exec=self._name)

    def _kill_tree(self, roots: list[int]) -> int:
        """How many there were below the roots and in the group; those that are dead but not reaped count.

        What is left to us is reaped: a zombie keeps its PID namespace, and the container's first process with it.
        """
        killed = self._group.kill() if self._group else {}
        for root in roots:
            below = pidfd.stop_descendants(root)
            for pid, started in below.items():
                pidfd.send(pid, started, signal.SIGKILL)
            killed |= below
        self._killed |= {pid: started for pid, started in killed.items() if started}
        for pid, started in self._killed.items():
            pidfd.reap(pid, started)
        return len(killed)


class Commands:
    def __init__(
        self, *, programs: Programs, bundles: Bundles, layout: Layout, moves: CgroupMoves, clock: Clock
    ) -> None:
        self._programs = programs
        self._bundles = bundles
        self._layout = layout
        self._moves = moves
        self._strays = adopted.Strays(monotonic=clock.monotonic)
        self._pid_files: set[str] = set()
        """Of the execs that are under way."""

    @contextlib.asynccontextmanager
    async def started(self, order: Order, stdio: Stdio) -> AsyncIterator[Running]:
        """A command that runs, or has run already. What still runs of it and of all that it has started is ended when
        this is left, unless the command itself has ended before: what it left behind then may stay.

        Raises what the runtime says where the command cannot be run.
        """
        adopted.accept_orphans()
        place = _Place(self._bundles, self._layout, order.id)
        with contextlib.ExitStack() as stack:
            self._pid_files.add(place.pid_file)
            stack.callback(self._pid_files.discard, place.pid_file)
            if order.stdio_uid is not None:
                descriptors.give_pipes([fd for fd in stdio.fds if fd >= 0], order.stdio_uid)
            with translated("prepare exec"):
                process_fd = _memory_file(stack, order.process)
                log_fd = _memory_file(stack, b"")
            global_args = self._programs.global_args(order.handler, _opened(log_fd))
            try:
                group = await to_the_end(blocking.run(place.make), name="prepare an exec")
                options = ("--cgroup", group.argument, *stdio.options) if group and group.argument else stdio.options
                words = runc.exec_args(order.id, process=_opened(process_fd), pid_file=place.pid_file, options=options)
                running = Running(name=name_of(order.process), log_fd=log_fd, pid_file=place.pid_file, group=group)
                self._moves.warm()
                async with contextlib.AsyncExitStack() as start:
                    program = await start.enter_async_context(self._programs.begun(order.handler))
                    runtime, cancelled = await _start(
                        (*_through(group), *program, *global_args, *words), stdio, (process_fd, log_fd)
                    )
                    stdio.release()
                    try:
                        if cancelled is not None:
                            raise cancelled
                        if not await running.begun(runtime):
                            raise running.failure(runtime.returncode or 0, await stdio.words())
                        await start.aclose()
                        yield running
                    finally:
                        if not running.ended:
                            await to_the_end(self._end(running, runtime), name="end an exec")
            finally:
                await to_the_end(blocking.run(place.clear), name="clear an exec")
        self._strays.sweep()

    async def _end(self, running: Running, runtime: process.Child) -> None:
        await running.end(runtime)
        await blocking.run(self._reap_unnamed)

    def _reap_unnamed(self) -> None:
        """What a runtime that failed has left: a command's number is in the file before the command is ours."""
        adopted.reap_foreign({read_number(path) for path in self._pid_files})


def _through(group: members.ExecGroup | None) -> tuple[str, ...]:
    """The words that bring a program into the group before it runs."""
    if group is None or not group.door:
        return ()
    return ("sh", "-c", '{ echo 0 >"$0"; } 2>/dev/null; exec "$@"', group.door)


async def _start(
    argv: tuple[str, ...], stdio: Stdio, pass_fds: tuple[int, ...]
) -> tuple[process.Child, asyncio.CancelledError | None]:
    """The runtime, and the cancellation that came meanwhile: by the time that a busy loop hears of the start, the
    command may run and the runtime be gone, and whoever ends the one has to look for the other."""
    starting = process.start(argv, stdio=stdio.fds, pass_fds=(*pass_fds, *stdio.pass_fds))
    task, cancelled = await settled(starting, name="start an exec")
    if cancelled is not None and task.exception() is not None:
        raise cancelled
    return task.result(), cancelled


class _Place:
    """What an exec has on this host beside its processes."""

    def __init__(self, bundles: Bundles, layout: Layout, container_id: ContainerId) -> None:
        self._bundles = bundles
        self._id = container_id
        self._name = f"{EXEC_PREFIX}{secrets.token_hex(6)}"
        self._group: members.ExecGroup | None = None
        self.pid_file = layout.exec_pid_file(container_id, self._name)

    def make(self) -> members.ExecGroup | None:
        """Raises NotFound where there is no such container."""
        launched = self._bundles.record(self._id)
        group = members.ExecGroup.below(launched.cgroups, launched.family, self._name)
        if group is not None and group.make():
            self._group = group
        return self._group

    def clear(self) -> None:
        if self._group is not None:
            self._group.dissolve()
        files.remove_file(self.pid_file)  # last: a group without it is of a command that has hardly begun


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


def name_of(document: bytes) -> str:
    """The program that was asked for, for messages."""
    try:
        args = msgspec.json.decode(document, type=_Process).args
    except (msgspec.DecodeError, UnicodeError):
        args = []
    return args[0] if args else "without a program"
