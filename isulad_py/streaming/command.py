"""One exec or attach session: bytes between a client and a command, up to the exit status.

A slow reader holds back its writer, in both directions. All output is sent before the status. A client that goes ends
the command, or leaves the container that it had attached to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import EngineError, Unavailable
from isulad_py.ports.streams import ByteSink, ByteSource, Streams
from isulad_py.streaming.failures import ClientGone, reason_of
from isulad_py.streaming.limits import COPY_BYTES, StreamLimits
from isulad_py.streaming.status import Status, exited, failed, succeeded

log = structlog.get_logger(__name__)

Interrupted = Callable[[], Awaitable[None]]
"""Raises the EngineError with which a session ends before its time: idle, daemon stopping."""


class CommandClient(Protocol):
    """The client's ends. One that it did not ask for is None."""

    @property
    def stdin(self) -> ByteSource | None: ...

    @property
    def stdout(self) -> ByteSink | None: ...

    @property
    def stderr(self) -> ByteSink | None: ...

    async def next_size(self) -> tuple[int, int] | None:
        """Of its terminal: width and height. None when no more will come."""
        ...

    async def finish(self, status: Status) -> None:
        """Ends all streams, says how it ended, and lets the client end the connection."""
        ...


class CommandSession:
    def __init__(
        self, client: CommandClient, *, limits: StreamLimits, interrupted: Interrupted, attached: bool = False
    ) -> None:
        """`attached`: it is somebody else's command, whose exit code does not concern this client."""
        self._client = client
        self._limits = limits
        self._interrupted = interrupted
        self._attached = attached

    async def run(self, open_streams: Callable[[], Awaitable[Streams]]) -> Status:
        """Returns what the client was told. Raises ClientGone."""
        try:
            streams = await open_streams()
            try:
                code = await self._serve(streams)
            finally:
                await to_the_end(streams.close(), name="close streams")
            status = succeeded() if self._attached else exited(code)
        except ClientGone:
            raise
        except EngineError as error:
            status = failed(error)
        await self._finish(status)
        return status

    async def _finish(self, status: Status) -> None:
        """One that reads nothing any more is told for as long as it may be idle."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                await self._client.finish(status)
        except TimeoutError as error:
            raise ClientGone("the client does not read how its session ended") from error

    async def _serve(self, streams: Streams) -> int:
        """The exit code, after the last byte of output."""
        try:
            async with asyncio.TaskGroup() as group:
                inputs = [
                    group.create_task(self._copy_input(streams.stdin), name="stdin"),
                    group.create_task(self._copy_sizes(streams), name="resize"),
                    group.create_task(self._watch(), name="interrupted"),
                ]
                code = await self._copy_output(streams)
                for task in inputs:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise reason_of(errors) from None
        return code

    async def _watch(self) -> None:
        await self._interrupted()

    async def _copy_input(self, sink: ByteSink | None) -> None:
        """To the end of what the client sends; a command that takes no more does not stop the client."""
        if self._client.stdin is None:
            return
        while data := await self._client.stdin.read(COPY_BYTES):
            if sink is None:
                continue
            try:
                await sink.write(data)
            except Unavailable:
                sink = None
        if sink is not None:
            await sink.close()

    async def _copy_sizes(self, streams: Streams) -> None:
        while size := await self._client.next_size():
            try:
                await streams.resize(*size)
            except EngineError as error:
                log.info("terminal cannot be resized", error=str(error))

    async def _copy_output(self, streams: Streams) -> int:
        ends = (("stdout", streams.stdout, self._client.stdout), ("stderr", streams.stderr, self._client.stderr))
        async with asyncio.TaskGroup() as group:
            copies = [OutputCopy(source, sink, name) for name, source, sink in ends if source is not None]
            tasks = {group.create_task(copy.run(), name=copy.name): copy for copy in copies}
            code = await streams.wait()
            await self._drain(tasks)
        return code

    async def _drain(self, pending: dict[asyncio.Task[None], OutputCopy]) -> None:
        """What was written before the exit is there to be read, and is, however slow the client. A source that has
        nothing for a while, and no end, is held open by somebody whom the command left behind."""
        while pending:
            marks = {task: copy.moves for task, copy in pending.items() if copy.reading}
            done, _ = await asyncio.wait(pending, timeout=self._limits.quiet_seconds)
            for task in done:
                del pending[task]
            for task, copy in pending.items():
                if copy.reading and marks.get(task) == copy.moves:
                    task.cancel()


class OutputCopy:
    """From a command to its client. A client that wants no more of it does not stop the command."""

    def __init__(self, source: ByteSource, sink: ByteSink | None, name: str) -> None:
        self.name = name
        self.reading = False
        """It waits for the command, not for the client."""
        self.moves = 0
        self._source = source
        self._sink = sink

    async def run(self) -> None:
        while data := await self._read():
            if self._sink is None:
                continue
            try:
                await self._sink.write(data)
            except ClientGone:
                raise
            except Unavailable:
                self._sink = None

    async def _read(self) -> bytes:
        self.reading = True
        data = await self._source.read(COPY_BYTES)
        self.reading = False
        self.moves += 1
        return data
