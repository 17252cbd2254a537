"""The one place that starts processes.

uvloop's own spawn forks the whole interpreter (7-25 ms in a 60 MB process); `host.spawn` uses vfork (about 1 ms) off
the loop. The end of a process is awaited through its pidfd, its pipes are non-blocking descriptors on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.host.collected import CHUNK_BYTES, Collected, collected
from isulad_py.host.priority import start_programs_ordinarily
from isulad_py.host.spawn import spawn
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import DeadlineExceeded, HostFailure, Unavailable

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_LIMIT_BYTES: Final = 1024 * 1024
DEVNULL: Final = -3
"""In `stdio`: /dev/null (the same number as subprocess has)."""

_spawners = ThreadPoolExecutor(max_workers=4, thread_name_prefix="spawn", initializer=start_programs_ordinarily)
"""Threads that wait for vfork; of their own, so that no other blocking work delays a start."""


class Command(Struct, frozen=True, kw_only=True):
    """One program start. The environment is exactly `env` plus a PATH: nothing of the daemon's leaks into it."""

    argv: tuple[str, ...]
    stdin: bytes | None = None
    """Written and then closed; None is /dev/null."""
    env: Mapping[str, str] = {}
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()
    timeout_seconds: float | None = None
    grace_seconds: float = 2.0
    """Between SIGTERM and SIGKILL once the deadline has passed or the caller is cancelled."""
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    """Of each output stream; what comes beyond is read and dropped, so that the program never blocks."""
    new_session: bool = False
    """A session and a process group of its own: when it has to be ended, what it started is ended with it."""


class Completed(Struct, frozen=True, kw_only=True):
    argv: tuple[str, ...]
    returncode: int
    """Negative: ended by that signal."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False

    def check(self, step: str) -> Completed:
        """This result, or HostFailure with `step`, the exit status and the program's last words."""
        if self.returncode == 0:
            return self
        words = (self.stderr or self.stdout).decode(errors="replace").strip()[-2000:]
        raise HostFailure(f"{step}: {Path(self.argv[0]).name} exited with {self.returncode}: {words}")


class Child:
    """A started process: awaited, signalled, and never abandoned."""

    def __init__(self, pid: int, *, leads_group: bool = False) -> None:
        """`pid` is a child of ours that nobody else reaps."""
        self.pid = pid
        self._leads_group = leads_group
        self._ending = False
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(pid)
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._on_end)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        if self._ending:
            self._signal_group(signal.SIGKILL)  # before it is reaped: until then the group's number is its own
        # Off the loop: the kernel may take tens of milliseconds to bury a process on a busy machine.
        self._loop.run_in_executor(_spawners, os.waitpid, self.pid, 0).add_done_callback(self._on_reaped)

    def _on_reaped(self, reaped: asyncio.Future[tuple[int, int]]) -> None:
        _, status = reaped.result()
        if not self._ended.done():
            self._ended.set_result(os.waitstatus_to_exitcode(status))

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """The exit status; negative for a signal. Safe to cancel and to call again."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Success when the process has already ended: the pidfd cannot name another one."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _signal_group(self, number: int) -> None:
        if self._leads_group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    async def end(self, grace_seconds: float) -> int:
        """Terminate, wait, kill, reap; a group that it leads goes with it."""
        self._ending = True
        if self._pidfd >= 0:
            self._signal_group(signal.SIGTERM)
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_seconds):
                return await self.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self.wait()


async def start(
    argv: Sequence[str],
    *,
    stdio: tuple[int, int, int] = (DEVNULL, DEVNULL, DEVNULL),
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    new_session: bool = False,
) -> Child:
    """Starts a program on given descriptors, which the caller may close afterwards.

    Raises HostFailure when it cannot be started at all. A caller that is cancelled meanwhile leaves no process behind.
    """

    def spawned() -> int:
        with _open_null() as null:
            return spawn(
                argv,
                stdio=(_or(stdio[0], null), _or(stdio[1], null), _or(stdio[2], null)),
                env={"PATH": PATH, **(env or {})},
                path=PATH,
                cwd=cwd,
                pass_fds=pass_fds,
                new_session=new_session,
            )

    starting = asyncio.get_running_loop().run_in_executor(_spawners, spawned)
    cancelled: asyncio.CancelledError | None = None
    while not starting.done():
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError as error:
            cancelled = error
    with _starting(argv[0]):
        pid = starting.result()
    try:
        child = Child(pid, leads_group=new_session)
    except BaseException:
        _drop(pid)
        raise
    if cancelled is not None:
        await to_the_end(child.end(0), name=f"end {pid}")
        raise cancelled
    return child


def _drop(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@contextlib.contextmanager
def _starting(program: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise HostFailure(f"cannot start {program}: no such program") from error
    except BlockingIOError as error:
        raise Unavailable(f"cannot start {program}: too many processes") from error
    except (OSError, ValueError) as error:
        raise HostFailure(f"cannot start {program}: {error}") from error


@contextlib.contextmanager
def _open_null() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _or(fd: int, null: int) -> int:
    return null if fd == DEVNULL else fd


class _Writer:
    """Feeds one pipe from a buffer and closes it; a reader that goes away is not an error."""

    def __init__(self, fd: int, data: bytes) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._data = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._loop.add_writer(fd, self._on_ready)

    def _on_ready(self) -> None:
        try:
            self._data = self._data[os.write(self._fd, self._data[:CHUNK_BYTES]) :] if self._data else self._data
        except BlockingIOError:
            return
        except OSError:
            self._data = self._data[:0]
        if not self._data:
            self.close()

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1


async def run(command: Command) -> Completed:
    """Runs a program to its end and returns its output.

    Raises HostFailure when it cannot be started and DeadlineExceeded when its time is over; then, and when the caller
    is cancelled, it has been terminated, killed if need be, and reaped before this returns. A non-zero exit is a value.
    """
    with collected(command.limit_bytes) as output, contextlib.ExitStack() as stack:
        child = await _start(command, output, stack)
        try:
            async with asyncio.timeout(command.timeout_seconds):
                code = await child.wait()
                await output.drain()
        except TimeoutError as error:
            await to_the_end(child.end(command.grace_seconds), name=f"end {child.pid}")
            raise DeadlineExceeded(f"{command.argv[0]}: no end within {command.timeout_seconds} s") from error
        except BaseException:
            await to_the_end(child.end(command.grace_seconds), name=f"end {child.pid}")
            raise
        return Completed(
            argv=command.argv,
            returncode=code,
            stdout=output.stdout(),
            stderr=output.stderr(),
            truncated=output.truncated,
        )


async def _start(command: Command, output: Collected, stack: contextlib.ExitStack) -> Child:
    """Our end of its stdin is closed by `stack` at the latest."""
    stdin = DEVNULL
    with contextlib.ExitStack() as given:
        given.callback(output.release)
        if command.stdin is not None:
            stdin, ours = os.pipe()
            given.callback(os.close, stdin)
            stack.callback(_Writer(ours, command.stdin).close)
        return await start(
            command.argv,
            stdio=(stdin, *output.fds),
            env=command.env,
            cwd=command.cwd,
            pass_fds=command.pass_fds,
            new_session=command.new_session,
        )
