"""Streams into the containers of tests/fakes/runtime.py. They pass tests/contract/test_streams.py.

Programs are told by their arguments: `cat`, `head -c N /dev/zero`, `sleep N`, `stty size`, `true`, `false`, and
`sh -c` with a few of these, `echo WORDS`, `read x`, `exit N` and `kill -9 $$` between semicolons (`echo x >&2` for
stderr); one with `missing` in its name cannot be started. A container's own program starts to read and write at its
first attach.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from isulad_py.model.container import Processes
from isulad_py.model.errors import (
    EngineError,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from isulad_py.model.ids import ContainerId
from isulad_py.ports.streams import ByteSink, ByteSource, StreamingExec, StreamWishes
from tests.fakes.faults import Faults
from tests.fakes.pipes import FakePipe
from tests.fakes.runtime import FakeContainer, FakeRuntime

CLIENT_BYTES = 1024 * 1024
Write = Callable[[bytes], Awaitable[None]]
Serve = Callable[[FakePipe, FakePipe], Coroutine[Any, Any, None]]


class _Exit(Exception):
    pass


@dataclass
class FakeProgram:
    """One that runs: what it reads, and where it writes."""

    args: list[str]
    stdin: FakePipe
    out: Write
    err: Write
    size: tuple[int, int] = (0, 0)

    async def run(self) -> int:
        """SIGPIPE is what a program gets for writing to nobody."""
        script = self.args[2] if self.args[:2] == ["sh", "-c"] else " ".join(self.args)
        code = 0
        try:
            for statement in script.split(";"):
                code = await self._one(statement.split())
        except _Exit as ended:
            return int(ended.args[0])
        except Unavailable:
            return 141
        return code

    async def _one(self, words: list[str]) -> int:
        match words:
            case ["cat"]:
                while data := await self.stdin.read(65536):
                    await self.out(data)
            case ["head", "-c", count, "/dev/zero"]:
                for at in range(0, int(count), 65536):
                    await self.out(bytes(min(65536, int(count) - at)))
            case ["echo", *said, ">&2"]:
                await self.err((" ".join(said) + "\n").encode())
            case ["echo", *said]:
                await self.out((" ".join(said) + "\n").encode())
            case ["read", _]:
                while await self.stdin.read(1) not in {b"\n", b""}:
                    pass
            case ["stty", "size"]:
                await self.out(b"%d %d\n" % self.size[::-1])
            case ["sleep", _]:
                await asyncio.Event().wait()
            case ["exit", code]:
                raise _Exit(code)
            case ["kill", "-9", "$$"]:
                raise _Exit(137)
        return int(words == ["false"])


async def _nowhere(data: bytes) -> None:
    await asyncio.sleep(0)


class FakeExec:
    """Implements ports.streams.Streams for a command. `sizes` are what the terminal has been resized to."""

    def __init__(self, args: list[str], wishes: StreamWishes, container: FakeContainer) -> None:
        self.wishes = wishes
        self.sizes: list[tuple[int, int]] = []
        self.closed = 0
        self.input, self.output, self.errors = FakePipe(), FakePipe(), FakePipe()
        if not wishes.stdin and not wishes.terminal:
            self.input.end()
        out: Write = self._typed_out if wishes.terminal else self.output.write
        err: Write = out if wishes.terminal else self.errors.write
        self.program = FakeProgram(
            args,
            self.input,
            out if wishes.stdout else _nowhere,
            err if wishes.stderr or wishes.terminal else _nowhere,
        )
        self._code = 137
        self.task = asyncio.ensure_future(self._run(container))

    async def _typed_out(self, data: bytes) -> None:
        await self.output.write(data.replace(b"\n", b"\r\n"))

    async def _run(self, container: FakeContainer) -> None:
        running = asyncio.ensure_future(self.program.run())
        ended = asyncio.ensure_future(container.ended.wait())
        try:
            await asyncio.wait([running, ended], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                self._code = running.result()
        finally:
            running.cancel()
            ended.cancel()
            self.input.leave()
            self.output.end()
            self.errors.end()

    @property
    def stdin(self) -> ByteSink | None:
        if not self.wishes.stdin:
            return None
        return _Typed(self) if self.wishes.terminal else self.input

    @property
    def stdout(self) -> ByteSource | None:
        return self.output if self.wishes.stdout else None

    @property
    def stderr(self) -> ByteSource | None:
        return self.errors if self.wishes.stderr and not self.wishes.terminal else None

    async def resize(self, width: int, height: int) -> None:
        if not (0 <= width <= 0xFFFF and 0 <= height <= 0xFFFF):
            raise InvalidInput(f"terminal size: {width} x {height} is out of range")
        if self.wishes.terminal:
            self.sizes.append((width, height))
            self.program.size = (width, height)

    async def wait(self) -> int:
        await asyncio.wait([self.task])
        return self._code

    async def close(self) -> None:
        self.closed += 1
        self.task.cancel()
        await asyncio.wait([self.task])
        self.output.leave()
        self.errors.leave()


@dataclass
class _Typed:
    """A terminal's input: echoed, and without an end."""

    command: FakeExec

    async def write(self, data: bytes) -> None:
        await self.command.input.write(data)
        await self.command.output.write(data.replace(b"\n", b"\r\n"))

    async def close(self) -> None:
        """Ends nothing."""


@dataclass
class FakeConsole:
    """A container's own streams, and who is attached to them."""

    container: FakeContainer
    runtime: FakeRuntime
    patience_seconds: float
    clients: list[FakeAttached] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stdin = FakePipe()
        if not self.container.launch.stdin:
            self.stdin.end()
        self.program = FakeProgram(self.container.args, self.stdin, partial(self._say, 0), partial(self._say, 1))
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        ended = asyncio.ensure_future(self.container.ended.wait())
        running = asyncio.ensure_future(self.program.run())
        await asyncio.wait([ended, running], return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, running):
            task.cancel()
        if self.container.fact is None:
            self.runtime.end(self.container.launch.id, running.result())
        for client in list(self.clients):
            client.end()

    async def _say(self, stream: int, data: bytes) -> None:
        if self.container.launch.terminal:
            stream, data = 0, data.replace(b"\n", b"\r\n")
        for client in list(self.clients):
            await client.take(stream, data)


class FakeAttached:
    """Implements ports.streams.Streams for a container."""

    def __init__(self, console: FakeConsole, wishes: StreamWishes) -> None:
        self._console = console
        self._wishes = wishes
        self._pipes = (FakePipe(CLIENT_BYTES), FakePipe(CLIENT_BYTES))
        self._stdin = _ContainerInput(console) if wishes.stdin else None
        console.clients.append(self)

    async def take(self, stream: int, data: bytes) -> None:
        if not (self._wishes.stdout, self._wishes.stderr)[stream]:
            return
        try:
            while self._pipes[stream].full:
                async with asyncio.timeout(self._console.patience_seconds):
                    await self._pipes[stream].changed()
            with contextlib.suppress(Unavailable):
                await self._pipes[stream].write(data)
        except TimeoutError:
            self.end(ResourceExhausted("attach: nothing was read; the container goes on without"))

    def end(self, error: EngineError | None = None) -> None:
        if self in self._console.clients:
            self._console.clients.remove(self)
        for pipe in self._pipes:
            pipe.end(error)

    @property
    def stdin(self) -> ByteSink | None:
        return self._stdin

    @property
    def stdout(self) -> ByteSource | None:
        return self._pipes[0] if self._wishes.stdout else None

    @property
    def stderr(self) -> ByteSource | None:
        return self._pipes[1] if self._wishes.stderr and not self._wishes.terminal else None

    async def resize(self, width: int, height: int) -> None:
        if self._console.container.launch.terminal:
            self._console.container.sizes.append((width, height))
            self._console.program.size = (width, height)

    async def wait(self) -> int:
        return (await self._console.runtime.wait_exit(self._console.container.launch.id, Processes())).exit_code

    async def close(self) -> None:
        self.end()
        for pipe in self._pipes:
            pipe.leave()
        if self._stdin is not None:
            await self._stdin.close()


@dataclass
class _ContainerInput:
    console: FakeConsole
    closed: bool = False

    async def write(self, data: bytes) -> None:
        if self.closed:
            raise Unavailable("write: the stream is closed")
        if not self.console.container.launch.stdin:
            raise Unavailable("stdin: the container was made without")
        await self.console.stdin.write(data)

    async def close(self) -> None:
        self.closed = True
        launch = self.console.container.launch
        if launch.stdin_once and not launch.terminal:
            self.console.stdin.end()


@dataclass
class FakeConnection:
    """Implements ports.streams.Connection."""

    source: FakePipe
    sink: FakePipe

    async def close(self) -> None:
        self.source.leave()
        self.sink.end()


class FakeStreams:
    """Implements ports.streams.StreamRuntime. Faults: open_exec, open_attach, dial.

    `execs`, `attached` and `connections` are all that were opened. `listen` puts a server on a port of a network
    namespace: it is called with what it reads and what it writes.
    """

    def __init__(self, runtime: FakeRuntime | None = None, *, patience_seconds: float = 2.0) -> None:
        self.runtime = runtime or FakeRuntime()
        self.faults = Faults()
        self.execs: list[FakeExec] = []
        self.attached: list[FakeAttached] = []
        self.connections: list[FakeConnection] = []
        self.namespaces = {""}
        self._patience_seconds = patience_seconds
        self._consoles: dict[ContainerId, FakeConsole] = {}
        self._ports: dict[tuple[str, int], Serve] = {}
        self._servers: list[asyncio.Task[None]] = []

    def listen(self, netns_path: str, port: int, serve: Serve) -> None:
        self.namespaces.add(netns_path)
        self._ports[netns_path, port] = serve

    def _find(self, container_id: ContainerId) -> FakeContainer:
        try:
            return self.runtime.containers[container_id]
        except KeyError:
            raise NotFound(f"container {container_id} is not known to the runtime") from None

    async def open_exec(self, command: StreamingExec) -> FakeExec:
        container = self._find(command.id)
        await self.faults.at("open_exec")
        if container.state in {"paused", "stopped"}:
            raise FailedPrecondition(f"exec: container {command.id} is {container.state}")
        args = msgspec.json.decode(command.process)["args"]
        if "missing" in args[0]:
            raise InvalidInput(f'exec {args[0]}: exec: "{args[0]}": executable file not found in $PATH')
        self.execs.append(FakeExec(args, command.wishes, container))
        return self.execs[-1]

    async def open_attach(self, container_id: ContainerId, processes: Processes, wishes: StreamWishes) -> FakeAttached:
        container = self._find(container_id)
        await self.faults.at("open_attach")
        if container.state == "stopped":
            raise FailedPrecondition("attach: the container's monitor has ended")
        if container_id not in self._consoles:
            self._consoles[container_id] = FakeConsole(container, self.runtime, self._patience_seconds)
        self.attached.append(FakeAttached(self._consoles[container_id], wishes))
        return self.attached[-1]

    async def dial(self, netns_path: str, port: int) -> FakeConnection:
        await self.faults.at("dial")
        if not 0 < port <= 0xFFFF:
            raise InvalidInput(f"port {port}: out of range")
        if netns_path not in self.namespaces:
            raise NotFound(f"network namespace {netns_path} is gone")
        serve = self._ports.get((netns_path, port))
        if serve is None:
            raise Unavailable(f"port {port}: connection refused")
        there, back = FakePipe(), FakePipe()
        self._servers.append(asyncio.ensure_future(serve(there, back)))
        self.connections.append(FakeConnection(back, there))
        return self.connections[-1]

    async def settle(self) -> None:
        """At the end of a test: nothing runs on."""
        tasks: list[asyncio.Future[Any]] = [*self._servers]
        tasks += [command.task for command in self.execs]
        tasks += [console.task for console in self._consoles.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
