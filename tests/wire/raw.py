"""An HTTP/2 client that says what no gRPC library would say."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
from hyperframe.frame import Frame, GoAwayFrame

HEADERS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/runtime.v1.RuntimeService/Version",
    ":authority": "localhost",
    "content-type": "application/grpc",
    "te": "trailers",
}


@dataclass
class RawAnswer:
    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""
    reset: int | None = None

    @property
    def status(self) -> str:
        """grpc-status, or the HTTP status of what is no gRPC answer."""
        return self.headers.get("grpc-status", f"http {self.headers.get(':status')}")

    @property
    def message(self) -> str:
        return self.headers.get("grpc-message", "")


class RawClient:
    def __init__(self) -> None:
        config = h2.config.H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=False, validate_inbound_headers=False
        )
        self.h2 = h2.connection.H2Connection(config=config)
        self.answers: dict[int, RawAnswer] = {}
        self.ended: dict[int, asyncio.Event] = {}
        self.goodbye: GoAwayFrame | None = None

    async def connect(self, path: Path) -> RawClient:
        self.reader, self.writer = await asyncio.open_unix_connection(str(path))
        self.h2.initiate_connection()
        self.flush()
        return self

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def begin(self, headers: dict[str, str] | None = None, *, drop: tuple[str, ...] = ()) -> int:
        """Sends headers: the usual ones with `headers` over them, without those in `drop`."""
        stream = self.h2.get_next_available_stream_id()
        merged = {**HEADERS, **(headers or {})}
        self.answers[stream] = RawAnswer()
        self.ended[stream] = asyncio.Event()
        self.h2.send_headers(stream, [(name, value) for name, value in merged.items() if name not in drop])
        self.flush()
        return stream

    def send(self, stream: int, data: bytes, *, end: bool = True) -> None:
        self.h2.send_data(stream, data, end_stream=end)
        self.flush()

    def write(self, data: bytes) -> None:
        """Anything at all."""
        self.writer.write(data)

    async def call(self, data: bytes, headers: dict[str, str] | None = None, **options: Any) -> RawAnswer:
        stream = self.begin(headers, **options)
        self.send(stream, data)
        return await self.answer(stream)

    async def answer(self, stream: int) -> RawAnswer:
        while not self.ended[stream].is_set():
            if not await self.read():
                raise ConnectionError("the server hung up")
        return self.answers[stream]

    async def read(self) -> bool:
        """Reads one frame; false at the end of the connection."""
        try:
            head = await self.reader.readexactly(9)
            frame, length = Frame.parse_frame_header(memoryview(head))
            body = await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        if isinstance(frame, GoAwayFrame):
            frame.parse_body(memoryview(body))
            self.goodbye = frame  # h2 would take nothing more after it, though calls under way still end
            return True
        for event in self.h2.receive_data(head + body):
            self._take(event)
        self.flush()
        return True

    async def read_to_end(self) -> None:
        while await self.read():
            pass

    def _take(self, event: Any) -> None:
        match event:
            case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                self.answers[event.stream_id].headers.update({str(name): str(value) for name, value in event.headers})
            case h2.events.DataReceived():
                self.answers[event.stream_id].data += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                self.ended[event.stream_id].set()
            case h2.events.StreamReset():
                self.answers[event.stream_id].reset = event.error_code
                self.ended[event.stream_id].set()

    async def close(self) -> None:
        """Idempotent."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def message(data: bytes = b"", *, compressed: bool = False, length: int | None = None) -> bytes:
    """A gRPC message with its prefix, which may lie."""
    return struct.pack(">?I", compressed, len(data) if length is None else length) + data
