"""Commands in running containers with streams: the same start and end as ExecSync's (see `command`), on pipes or a
terminal that the caller reads and writes.

The command holds the far ends itself, no program copies in between: a slow client slows the command, a command that
closes its stdin is seen to, and a terminal is what the runtime has made it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
from typing import Final

from isulad_py.host import blocking
from isulad_py.host.collected import collected
from isulad_py.host.descriptors import Sink, Source, empty_input, pipe
from isulad_py.host.tasks import to_the_end
from isulad_py.host.terminal import ConsoleSocket, Terminal
from isulad_py.ports.streams import ByteSink, ByteSource, StreamingExec, StreamWishes
from isulad_py.runtime.bundle import Bundles
from isulad_py.runtime.command import Commands, Order, Running, Stdio
from isulad_py.runtime.layout import EXEC_PREFIX, Layout

WORDS_LIMIT: Final = 64 * 1024
WORDS_SECONDS: Final = 1.0
"""A runtime that fails may leave somebody at the other end of the pipe who says nothing."""


class Ends(contextlib.ExitStack):
    """Our ends of a command's streams; closed at its end."""

    stdin: ByteSink | None = None
    stdout: ByteSource | None = None
    stderr: ByteSource | None = None
    terminal: Terminal | None = None

    def pipes(self, wishes: StreamWishes) -> Stdio:
        """What was not wished for is empty, or dropped. Not by the host's /dev/null: crun before 1.24 gives that to the
        command's user."""
        given = self.enter_context(contextlib.ExitStack())
        if wishes.stdin:
            stdin = self._input(given)
        else:
            stdin = empty_input()
            given.callback(os.close, stdin)
        stdout = stderr = -1
        if not (wishes.stdout and wishes.stderr):
            dropped = self.enter_context(collected(0))
            given.callback(dropped.release)
            stdout, stderr = dropped.fds
        if wishes.stdout:
            self.stdout, stdout = self._output(given)
        if wishes.stderr:
            self.stderr, stderr = self._output(given)
        return Stdio(fds=(stdin, stdout, stderr), release=given.close, words=self._words)

    def _input(self, given: contextlib.ExitStack) -> int:
        theirs, ours = pipe()
        given.callback(os.close, theirs)
        sink = Sink(ours)
        self.callback(sink.abandon)
        self.stdin = sink
        return theirs

    def _output(self, given: contextlib.ExitStack) -> tuple[ByteSource, int]:
        ours, theirs = pipe()
        given.callback(os.close, theirs)
        source = Source(ours)
        self.callback(source.close)
        return source, theirs

    async def _words(self) -> bytes:
        """What a runtime that has failed left on stderr."""
        if self.stderr is None:
            return b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WORDS_SECONDS):
                return await self.stderr.read(WORDS_LIMIT)
        return b""

    def awaiting(self, console: ConsoleSocket) -> Stdio:
        return Stdio(
            fds=(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL),
            release=lambda: None,
            words=self._words,
            options=("--console-socket", console.argument),
            pass_fds=(console.directory_fd,),
        )

    def take(self, terminal: Terminal, wishes: StreamWishes) -> None:
        self.callback(terminal.close)
        self.terminal = terminal
        if wishes.stdin:
            self.stdin = terminal.sink
        if wishes.stdout:
            self.stdout = terminal.source
        else:
            terminal.source.discard()


class ExecStreams:
    """Implements ports.streams.Streams for a command."""

    def __init__(self, *, ends: Ends, running: Running, scope: contextlib.AsyncExitStack) -> None:
        self._ends = ends
        self._running = running
        self._scope = scope
        self._closing = asyncio.Lock()

    @property
    def stdin(self) -> ByteSink | None:
        return self._ends.stdin

    @property
    def stdout(self) -> ByteSource | None:
        return self._ends.stdout

    @property
    def stderr(self) -> ByteSource | None:
        return self._ends.stderr

    async def resize(self, width: int, height: int) -> None:
        if self._ends.terminal is not None:
            self._ends.terminal.resize(width, height)

    async def wait(self) -> int:
        return await self._running.wait()

    async def close(self) -> None:
        """What the command left behind when it ended by itself may stay, as it may after ExecSync."""
        # The second caller would go on where the first one waits, and hang up a terminal whose processes are not ended.
        async with self._closing:
            await to_the_end(self._scope.aclose(), name="close an exec")


class StreamingExecs:
    def __init__(self, *, commands: Commands, bundles: Bundles, layout: Layout) -> None:
        self._commands = commands
        self._bundles = bundles
        self._layout = layout

    async def open(self, command: StreamingExec) -> ExecStreams:
        """As ports.streams.StreamRuntime.open_exec."""
        order = Order(id=command.id, handler=command.handler, process=command.process, stdio_uid=command.stdio_uid)
        async with contextlib.AsyncExitStack() as scope:
            ends = scope.enter_context(Ends())
            if command.wishes.terminal:
                running = await self._on_terminal(order, command.wishes, ends, scope)
            else:
                running = await scope.enter_async_context(self._commands.started(order, ends.pipes(command.wishes)))
            return ExecStreams(ends=ends, running=running, scope=scope.pop_all())

    async def _on_terminal(
        self, order: Order, wishes: StreamWishes, ends: Ends, scope: contextlib.AsyncExitStack
    ) -> Running:
        await blocking.run(self._bundles.record, order.id)  # else the socket's directory would be missed first
        with contextlib.closing(
            ConsoleSocket(self._layout.bundle(order.id), f"{EXEC_PREFIX}{secrets.token_hex(6)}")
        ) as console:
            running = await scope.enter_async_context(self._commands.started(order, ends.awaiting(console)))
            ends.take(Terminal(console.receive(), session=running.wait), wishes)
            return running
