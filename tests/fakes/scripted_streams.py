"""Streams whose other ends the test itself writes: a program is a coroutine over pipes, a container's output is what
the test puts there, a port is served by a coroutine. For sessions that no program of tests/fakes/streams.py could make
(that one stands for the runtime, and passes its contract).

A command is told by its name: `true`, `false`, `cat`, `echo`, `sleep`, `sh -c "exit 3"`, and whatever `programs` adds;
others are not found. Pipes hold 64 KiB, as the kernel's do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from isulad_py.model.container import Processes
from isulad_py.model.errors import FailedPrecondition, HostFailure, Unavailable
from isulad_py.model.ids import ContainerId
from isulad_py.ports.streams import StreamingExec, StreamWishes
from tests.fakes.faults import Faults

PIPE_BYTES = 64 * 1024


class Pipe:
    """ByteSource and ByteSink: one writes, another reads."""

    def __init__(self, capacity: int = PIPE_BYTES) -> None:
        self._capacity = capacity
        self._held = bytearray()
        self._changed = asyncio.Condition()
        self.ended = False
        self.broken = False
        """Nobody reads any more."""
        self.passed = 0
        """Bytes that were read."""

    async def read(self, limit_bytes: int) -> bytes:
        async with self._changed:
            await self._changed.wait_for(lambda: self._held or self.ended or self.broken)
            data = bytes(self._held[:limit_bytes])
            del self._held[:limit_bytes]
            self.passed += len(data)
            self._changed.notify_all()
            return data

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._held) < self._capacity or self.broken or self.ended)
                if self.broken or self.ended:
                    raise Unavailable("nobody reads the pipe")
                part = view[: self._capacity - len(self._held)]
                self._held += part
                view = view[len(part) :]
                self._changed.notify_all()

    async def close(self) -> None:
        async with self._changed:
            self.ended = True
            self._changed.notify_all()

    async def break_(self) -> None:
        """The reader goes."""
        async with self._changed:
            self.broken = True
            self._held.clear()
            self._changed.notify_all()


class ScriptedProcess:
    """A program's side of its streams."""

    def __init__(self, args: list[str], wishes: StreamWishes) -> None:
        self.args = args
        self.wishes = wishes
        self.stdin, self.stdout, self.stderr = Pipe(), Pipe(), Pipe()
        self.sizes: list[tuple[int, int]] = []
        self.resized = asyncio.Event()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.killed = False
        self.leaves_child = False
        """Something outlives it that holds its output open."""


Program = Callable[[ScriptedProcess], Awaitable[int]]
"""Returns the exit code."""


class ScriptedStreams:
    """Implements ports.streams.Streams over a running program."""

    def __init__(self, process: ScriptedProcess, program: Program) -> None:
        self.process = process
        self.closed = 0
        wishes = process.wishes
        self.stdin = process.stdin if wishes.stdin else None
        self.stdout = process.stdout if wishes.stdout else None
        self.stderr = process.stderr if wishes.stderr and not wishes.terminal else None
        self._task = asyncio.get_running_loop().create_task(self._run(program), name="fake program")

    async def _run(self, program: Program) -> None:
        process = self.process
        if not process.wishes.stdin:
            await process.stdin.close()
        code = await program(process)
        await process.stdin.break_()
        if not process.leaves_child:
            await process.stdout.close()
            await process.stderr.close()
        process.ended.set_result(code)

    async def resize(self, width: int, height: int) -> None:
        if self.process.wishes.terminal:
            self.process.sizes.append((width, height))
            self.process.resized.set()

    async def wait(self) -> int:
        waiting: set[asyncio.Future[Any]] = {self._task, self.process.ended}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done() and not self._task.cancelled():
            self._task.result()
        return await asyncio.shield(self.process.ended)

    async def close(self) -> None:
        self.closed += 1
        if not self._task.done():
            self.process.killed = True
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self.process.ended.done():
            self.process.ended.set_result(137)


class ScriptedContainer:
    """The streams of a running container, shared by all that are attached."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.terminal = terminal
        self.stdin = Pipe()
        self.attached: list[ScriptedAttachment] = []
        self.sizes: list[tuple[int, int]] = []
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def put(self, data: bytes, *, stderr: bool = False) -> None:
        """Output, to everyone who is attached."""
        for attachment in list(self.attached):
            pipe = attachment.stderr if stderr else attachment.stdout
            if pipe is not None:
                await pipe.write(data)

    async def end(self, code: int) -> None:
        self.ended.set_result(code)
        for attachment in list(self.attached):
            for pipe in (attachment.stdout, attachment.stderr):
                if pipe is not None:
                    await pipe.close()


class ScriptedAttachment:
    """Implements ports.streams.Streams."""

    def __init__(self, container: ScriptedContainer, wishes: StreamWishes) -> None:
        self._container = container
        self.wishes = wishes
        self.closed = 0
        self.stdin = container.stdin if wishes.stdin else None
        self.stdout = Pipe() if wishes.stdout else None
        self.stderr = Pipe() if wishes.stderr and not wishes.terminal else None
        container.attached.append(self)

    async def resize(self, width: int, height: int) -> None:
        self._container.sizes.append((width, height))

    async def wait(self) -> int:
        return await asyncio.shield(self._container.ended)

    async def close(self) -> None:
        self.closed += 1
        if self in self._container.attached:
            self._container.attached.remove(self)


class ScriptedConnection:
    """Implements ports.streams.Connection; `peer_*` are the other side's."""

    def __init__(self) -> None:
        self.sink = self.peer_source = Pipe()
        self.source = self.peer_sink = Pipe()
        self.closed = asyncio.Event()

    async def close(self) -> None:
        self.closed.set()
        await self.source.break_()
        await self.sink.close()


class ScriptedStreamRuntime:
    """Implements ports.streams.StreamRuntime. Faults: open_exec, open_attach, dial."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.programs: dict[str, Program] = {
            "true": _exits(0),
            "false": _exits(1),
            "cat": _cat,
            "echo": _echo,
            "sh": _shell,
            "sleep": _sleep,
        }
        self.documents: list[StreamingExec] = []
        """What was asked for, and the streams that it became."""
        self.commands: list[ScriptedStreams] = []
        self.containers: dict[str, ScriptedContainer] = {}
        """By id: those with a monitor."""
        self.listeners: dict[tuple[str, int], Callable[[ScriptedConnection], Awaitable[None]]] = {}
        """By path of the network namespace and port."""
        self.connections: list[ScriptedConnection] = []
        self._servers: set[asyncio.Task[Any]] = set()

    async def open_exec(self, command: StreamingExec) -> ScriptedStreams:
        await self.faults.at("open_exec")
        self.documents.append(command)
        process = msgspec.json.decode(command.process)
        assert bool(process.get("terminal")) == command.wishes.terminal
        args = list(process["args"])
        program = self.programs.get(args[0].rpartition("/")[2])
        if program is None:
            raise HostFailure(f"exec: {args[0]}: not found in $PATH")
        streams = ScriptedStreams(ScriptedProcess(args, command.wishes), program)
        self.commands.append(streams)
        return streams

    async def open_attach(
        self, container_id: ContainerId, processes: Processes, wishes: StreamWishes
    ) -> ScriptedAttachment:
        await self.faults.at("open_attach")
        container = self.containers.get(container_id)
        if container is None:
            raise FailedPrecondition(f"container {container_id} has no monitor")
        return ScriptedAttachment(container, wishes)

    async def dial(self, netns_path: str, port: int) -> ScriptedConnection:
        await self.faults.at("dial")
        serve = self.listeners.get((netns_path, port))
        if serve is None:
            raise Unavailable(f"port {port}: connection refused")
        connection = ScriptedConnection()
        self.connections.append(connection)
        task = asyncio.get_running_loop().create_task(_served(serve, connection), name="fake listener")
        self._servers.add(task)
        task.add_done_callback(self._servers.discard)
        return connection


async def _served(serve: Callable[[ScriptedConnection], Awaitable[None]], connection: ScriptedConnection) -> None:
    try:
        await serve(connection)
    except Unavailable:
        return  # the client went


def _exits(code: int) -> Program:
    async def program(process: ScriptedProcess) -> int:
        return code

    return program


async def _cat(process: ScriptedProcess) -> int:
    while data := await process.stdin.read(PIPE_BYTES):
        await process.stdout.write(data)
    return 0


async def _echo(process: ScriptedProcess) -> int:
    await process.stdout.write(" ".join(process.args[1:]).encode() + b"\n")
    return 0


async def _shell(process: ScriptedProcess) -> int:
    found = re.search(r"exit (\d+)", process.args[-1])
    return int(found.group(1)) if found else 0


async def _sleep(process: ScriptedProcess) -> int:
    await asyncio.get_running_loop().create_future()
    return 0
