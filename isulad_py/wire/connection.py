"""One client's HTTP/2 connection, and the calls on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, cast

import structlog
from grpclib.config import Configuration
from grpclib.protocol import AbstractHandler, Connection, EventsProcessor, H2Protocol, Stream
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, UnknownFrameReceived
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

from isulad_py.model.errors import InvalidInput
from isulad_py.ports.tasks import Tasks
from isulad_py.wire.call import Call, Ending, timeout_seconds
from isulad_py.wire.status import outcome_of

log = structlog.get_logger(__name__)

STREAMS_LIMIT: Final = 1000
"""Calls at once on one connection: a kubelet has up to one for each pod, beside streams of events."""
STREAM_WINDOW_BYTES: Final = 4 * 1024 * 1024
CONNECTION_WINDOW_BYTES: Final = 16 * 1024 * 1024
"""What a client may send before it is read; every handler reads at once."""

CONFIGURATION: Final = Configuration(
    http2_connection_window_size=CONNECTION_WINDOW_BYTES, http2_stream_window_size=STREAM_WINDOW_BYTES
).__for_server__()
H2_CONFIGURATION: Final = H2Configuration(
    client_side=False,
    header_encoding="utf-8",
    # Ours are right, and what a client's lack is asked for where they are read; validation costs as much as the call.
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)

Answering: TypeAlias = Callable[[Call], Awaitable[None]]


class Calls(AbstractHandler):
    """The calls under way on one connection."""

    def __init__(self, *, answer: Answering, tasks: Tasks) -> None:
        self._answer = answer
        self._tasks = tasks
        self.stopping = False
        self.running: dict[Stream, tuple[Call, asyncio.Task[None]]] = {}

    def accept(self, stream: Stream, headers: list[tuple[str, str]], release_stream: Callable[[], None]) -> None:
        """A client has begun a call."""
        head = dict(headers)
        call = Call(stream, head.get(":path", ""))
        task = self._tasks.start(self._serve(stream, call, head, release_stream), name=f"call: {call.id}")
        self.running[stream] = (call, task)

    async def _serve(
        self, stream: Stream, call: Call, head: dict[str, str], release_stream: Callable[[], None]
    ) -> None:
        try:
            await self._begin(call, head)
        finally:
            call.close()
            self.running.pop(stream, None)
            release_stream()

    async def _begin(self, call: Call, head: dict[str, str]) -> None:
        http_status = _refusal(head)
        if http_status:
            await call.refuse(http_status)
            return
        try:
            deadline_seconds = timeout_seconds(head.get("grpc-timeout"))
        except InvalidInput as error:
            outcome = outcome_of(error)
            await call.finish(outcome.status, outcome.message)
            return
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is served in a task")
        call.run_in(task, deadline_seconds)
        if self.stopping:
            call.ending = Ending.STOPPING
        await self._answer(call)

    def cancel(self, stream: Stream) -> None:
        """The client has reset the stream."""
        if stream in self.running:
            self.running[stream][0].cancel(Ending.CLIENT)

    def close(self) -> None:
        """The connection is lost."""
        for call, _ in list(self.running.values()):
            call.cancel(Ending.CLIENT)


def _refusal(head: dict[str, str]) -> int:
    """The HTTP status for what is no gRPC call; 0 for one that is."""
    if head.get(":method") != "POST":
        return 405
    kind = head.get("content-type", "").partition(";")[0]
    return 0 if kind in {"application/grpc", "application/grpc+proto"} else 415


class ClientConnection(H2Protocol):
    """grpclib's protocol, except that nothing a client sends raises out of it, and that it can say goodbye."""

    def __init__(self, *, calls: Calls, on_end: Callable[[ClientConnection], None], welcome: bool = True) -> None:
        """One that is not `welcome` is closed before a byte is read."""
        super().__init__(calls, CONFIGURATION, H2_CONFIGURATION)
        self.calls = calls
        self._on_end = on_end
        self._welcome = welcome

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no asyncio class
        self._h2 = H2Connection(config=H2_CONFIGURATION)
        self._h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_LIMIT,
                SettingCodes.MAX_HEADER_LIST_SIZE: H2Connection.DEFAULT_MAX_HEADER_LIST_SIZE,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
            },
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW_BYTES - 65535)
        self.connection = Connection(self._h2, self._transport, config=CONFIGURATION)
        self.connection.flush()
        self.connection.initialize()
        self.processor = EventsProcessor(self.calls, self.connection)
        self.processor.processors[UnknownFrameReceived] = _ignore
        if not self._welcome:
            self.close()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
            self._flush()
            for event in events:
                self.processor.process(event)
            self._flush()
        except Exception as error:  # the peer's doing, whatever it is: it costs this connection and no other
            log.warning("connection ended: not HTTP/2 as it should be", error=str(error) or type(error).__name__)
            self._flush()
            self.close()

    def _flush(self) -> None:
        if not self._transport.is_closing():
            data = self._h2.data_to_send()
            if data:
                self._transport.write(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._on_end(self)

    def go_away(self) -> None:
        """Asks the client to begin no more calls here; those under way go on."""
        self.calls.stopping = True
        if not self._transport.is_closing():
            # Written past h2, which takes a connection for closed once it has sent this frame.
            frame = GoAwayFrame(stream_id=0, last_stream_id=self._h2.highest_inbound_stream_id, error_code=0)
            self._transport.write(frame.serialize())

    def close(self) -> None:
        """Ends the connection and the calls on it."""
        self.processor.close("connection closed")


def _ignore(event: Event) -> None:
    """Unknown frames are to be ignored (RFC 9113, 4.1)."""
