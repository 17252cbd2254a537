"""One gRPC call on one HTTP/2 stream (gRPC over HTTP2, as github.com/grpc/grpc specifies it)."""

from __future__ import annotations

import asyncio
import enum
import re
import secrets
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote_to_bytes

from grpclib.const import Status
from grpclib.metadata import encode_grpc_message
from grpclib.protocol import Stream
from h2.exceptions import ProtocolError

from isulad_py.model.errors import InvalidInput, ResourceExhausted, Unsupported
from isulad_py.wire.status import MESSAGE_BYTES

REQUEST_LIMIT_BYTES: Final = 16 * 1024 * 1024
ANSWER_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""What a kubelet takes."""
PREFIX: Final = struct.Struct(">?I")
"""Before each message: whether it is compressed, and its length."""
TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])")
UNITS: Final[Mapping[str, float]] = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
CUT_ESCAPE: Final = re.compile(r"%[0-9A-F]?$")
ELLIPSIS: Final = "..."


class Ending(enum.Enum):
    """Why a call is cancelled."""

    CLIENT = "the client is gone"
    DEADLINE = "the client's deadline has passed"
    STOPPING = "the daemon is stopping"


class ClientGone(Exception):
    """Nobody is left to answer."""


def timeout_seconds(value: str | None) -> float | None:
    """Of a grpc-timeout header; None where there is none. Raises InvalidInput."""
    if value is None:
        return None
    match = TIMEOUT.fullmatch(value)
    if match is None:
        raise InvalidInput(f"grpc-timeout: {value[:40]!r} is not a timeout")
    return int(match[1]) * UNITS[match[2]]


class Call:
    """A call's request and answer, and its one cancellation.

    Cancelled at most once, whatever comes together (a client whose deadline passes resets the stream at the same
    moment), so that clean-up which has begun is not cancelled itself.
    """

    def __init__(self, stream: Stream, path: str) -> None:
        self.id = secrets.token_hex(4)
        """For logs, and for messages about errors that are nobody's."""
        self.path = path
        self.ending: Ending | None = None
        self.endless = False
        """A stream that ends only with its client."""
        self._stream = stream
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self._finished = False

    def run_in(self, task: asyncio.Task[None], deadline_seconds: float | None) -> None:
        """The task that serves it, to be cancelled after so many seconds."""
        self._task = task
        if deadline_seconds is None:
            return
        if deadline_seconds <= 0:
            self.ending = self.ending or Ending.DEADLINE
        else:
            self._timer = task.get_loop().call_later(deadline_seconds, self.cancel, Ending.DEADLINE)

    def cancel(self, ending: Ending) -> None:
        if self.ending is None:
            self.ending = ending
            if self._task is not None:
                self._task.cancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def receive(self) -> bytes:
        """The request's one message."""
        prefix = await self._read(PREFIX.size)
        if not prefix:
            raise InvalidInput("request: there is none")
        compressed, length = PREFIX.unpack(prefix)
        if compressed:
            raise Unsupported("request: compressed messages are not supported")
        if length > REQUEST_LIMIT_BYTES:
            raise ResourceExhausted(f"request: {length} bytes are more than {REQUEST_LIMIT_BYTES}")
        return await self._read(length)

    async def _read(self, size: int) -> bytes:
        try:
            return await self._stream.recv_data(size)
        except AssertionError as error:  # grpclib's word for a stream that ends in the middle of a message
            raise InvalidInput("request: ends in the middle") from error

    async def begin(self) -> None:
        """Tells the client that it is being served; the first message does so otherwise."""
        if not self._begun:
            self._begun = True
            with self._client():
                await self._stream.send_headers([(":status", "200"), ("content-type", "application/grpc")])

    async def send(self, message: bytes) -> None:
        if len(message) > ANSWER_LIMIT_BYTES:
            raise ResourceExhausted(f"answer: {len(message)} bytes are more than {ANSWER_LIMIT_BYTES}")
        await self.begin()
        with self._client():
            await self._stream.send_data(PREFIX.pack(False, len(message)) + message)

    async def finish(self, status: Status, message: str) -> None:
        """Ends the answer; does nothing where that has been done, or nobody is left."""
        if self._finished:
            return
        self._finished = True
        headers = [] if self._begun else [(":status", "200"), ("content-type", "application/grpc")]
        headers.append(("grpc-status", str(status.value)))
        if message:
            headers.append(("grpc-message", trailer(message)))
        try:
            with self._client():
                await self._stream.send_headers(headers, end_stream=True)
                if status is not Status.OK and self._stream.closable:
                    # Whatever the client still sends, it may stop (RFC 9113, 8.1).
                    self._stream.reset_nowait()
        except ClientGone:
            return

    async def refuse(self, http_status: int) -> None:
        """An answer to what is no gRPC call."""
        self._finished = True
        with self._client():
            await self._stream.send_headers([(":status", str(http_status))], end_stream=True)
            if self._stream.closable:
                self._stream.reset_nowait()

    @contextmanager
    def _client(self) -> Iterator[None]:
        if self.ending is Ending.CLIENT:
            raise ClientGone
        try:
            yield
        except (ProtocolError, OSError) as error:
            raise ClientGone from error


def trailer(message: str) -> str:
    """The message as a trailer's value, cut between characters where it is too long."""
    # What came out of a program may not be UTF-8, and must not make the answer impossible.
    encoded: str = encode_grpc_message(message.encode("utf-8", "replace").decode())
    if len(encoded) <= MESSAGE_BYTES:
        return encoded
    whole = CUT_ESCAPE.sub("", encoded[: MESSAGE_BYTES - len(ELLIPSIS)])
    kept: str = encode_grpc_message(unquote_to_bytes(whole).decode("utf-8", "ignore"))
    return kept + ELLIPSIS
