"""Opens the streams of a streaming request, once its client has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from isulad_py.engine.exec import Exec
from isulad_py.engine.registry import Registry
from isulad_py.engine.sessions import (
    AttachRequest,
    ExecRequest,
    PortForwardRequest,
    ready_pod,
    running_container,
)
from isulad_py.engine.specs import Specs
from isulad_py.model.container import ContainerRecord
from isulad_py.model.errors import ResourceExhausted
from isulad_py.ports.streams import (
    ByteSink,
    ByteSource,
    Connection,
    StreamingExec,
    StreamRuntime,
    Streams,
    StreamWishes,
)


class StreamOpener:
    """Checks again what was checked when the token was issued: a minute may have passed."""

    def __init__(
        self, *, registry: Registry, exec_: Exec, specs: Specs, runtime: StreamRuntime, session_limit: int
    ) -> None:
        self._registry = registry
        self._exec = exec_
        self._specs = specs
        self._runtime = runtime
        self._limit = session_limit
        self.sessions = 0
        """Now open."""

    @contextmanager
    def session(self) -> Iterator[None]:
        """Holds one of the places. ResourceExhausted when there is none."""
        if self.sessions >= self._limit:
            raise ResourceExhausted(f"stream-session-limit: {self._limit} streaming sessions are open")
        self.sessions += 1
        try:
            yield
        finally:
            self.sessions -= 1

    async def exec(self, request: ExecRequest) -> Streams:
        """Starts the command. Raises as ContainerRuntime.exec_sync does."""
        record = self._exec.runnable(request.container_id, request.cmd)
        process = await self._specs.exec_process(record, request.cmd, terminal=request.wishes.terminal)
        command = StreamingExec(
            id=record.id,
            handler=record.runtime_handler,
            process=process,
            wishes=request.wishes,
            stdio_uid=self._specs.stdio_uid(record),
        )
        return await self._runtime.open_exec(command)

    async def attach(self, request: AttachRequest) -> Streams:
        """Joins the container's own streams, as it was created: whether there is a terminal, whether stdin is open at
        all, and whether the end of the client's input is the end of the container's."""
        record = running_container(self._registry, request.container_id)
        streams = await self._runtime.open_attach(record.id, record.processes, own_wishes(record, request.wishes))
        return streams if record.config.stdin_once else _LeavesStdinOpen(streams)

    async def dial(self, request: PortForwardRequest, port: int) -> Connection:
        """Unavailable where nobody listens; the message names the port."""
        record = ready_pod(self._registry, request.pod_id)
        return await self._runtime.dial(record.environment.netns_path, port)


def own_wishes(record: ContainerRecord, wishes: StreamWishes) -> StreamWishes:
    """CRI AttachRequest.tty only describes the client: whether there is a terminal was decided at the creation."""
    terminal = record.config.tty
    return msgspec.structs.replace(
        wishes,
        stdin=wishes.stdin and record.config.stdin,
        stderr=wishes.stderr and not terminal,
        terminal=terminal,
    )


class _LeavesStdinOpen:
    """A container's streams whose stdin outlives this client (CRI ContainerConfig.stdin_once is false)."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._stdin = None if streams.stdin is None else _KeptOpen(streams.stdin)

    @property
    def stdin(self) -> ByteSink | None:
        return self._stdin

    @property
    def stdout(self) -> ByteSource | None:
        return self._streams.stdout

    @property
    def stderr(self) -> ByteSource | None:
        return self._streams.stderr

    async def resize(self, width: int, height: int) -> None:
        await self._streams.resize(width, height)

    async def wait(self) -> int:
        return await self._streams.wait()

    async def close(self) -> None:
        await self._streams.close()


class _KeptOpen:
    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink

    async def write(self, data: bytes) -> None:
        await self._sink.write(data)

    async def close(self) -> None:
        """The next client's input goes on where this one's ended."""
