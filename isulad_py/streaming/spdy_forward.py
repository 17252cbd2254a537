"""Port-forward over SPDY: for each connection a pair of streams, joined by the header `requestID`.

Source: Kubernetes' subprotocol `portforward.k8s.io`. What goes wrong with one connection is written to its error
stream, and does not concern the others.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from isulad_py.model.errors import EngineError, Unavailable
from isulad_py.streaming.command import Interrupted
from isulad_py.streaming.failures import ClientGone, ProtocolError, reason_of
from isulad_py.streaming.forward import Dial, forward
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.spdy_command import STREAM_TYPE
from isulad_py.streaming.spdy_frames import ResetStatus
from isulad_py.streaming.spdy_link import SpdyLink, SpdyStream

log = structlog.get_logger(__name__)

PROTOCOL: Final = "portforward.k8s.io"


class _Pair:
    """The streams of one connection, as they come."""

    def __init__(self) -> None:
        self.streams: dict[str, SpdyStream] = {}
        self.complete = asyncio.Event()


class SpdyForwardSession:
    """Lasts until the client goes, or `interrupted` says so."""

    def __init__(self, link: SpdyLink, *, dial: Dial, limits: StreamLimits, interrupted: Interrupted) -> None:
        self._link = link
        self._dial = dial
        self._limits = limits
        self._interrupted = interrupted
        self._pairs: dict[str, _Pair] = {}
        """Those whose second stream is awaited."""

    async def run(self) -> None:
        """Raises ClientGone, or the EngineError of the interruption once the client has been told goodbye."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(), name="interrupted")
                while True:
                    await self._take(await self._link.accept(), group)
        except BaseExceptionGroup as errors:
            reason = reason_of(errors)
            if isinstance(reason, EngineError) and not isinstance(reason, ClientGone):
                await self._link.end()
            raise reason from None

    async def _watch(self) -> None:
        await self._interrupted()

    async def _take(self, stream: SpdyStream, group: asyncio.TaskGroup) -> None:
        try:
            kind, request_id = self._described(stream)
        except ProtocolError as error:
            log.warning("stream refused", reason=str(error))
            await stream.reset(ResetStatus.REFUSED_STREAM)
            return
        pair = self._pairs.get(request_id)
        if pair is None:
            pair = self._pairs[request_id] = _Pair()
            group.create_task(self._serve(request_id, pair), name=f"forward:{request_id}")
        pair.streams[kind] = stream
        await stream.reply()
        if len(pair.streams) == 2:
            del self._pairs[request_id]
            pair.complete.set()

    def _described(self, stream: SpdyStream) -> tuple[str, str]:
        kind, request_id = described(stream)
        if request_id in self._pairs and kind in self._pairs[request_id].streams:
            raise ProtocolError(f"port-forward: second {kind} stream of request {request_id}")
        return kind, request_id

    async def _serve(self, request_id: str, pair: _Pair) -> None:
        try:
            async with asyncio.timeout(self._limits.creation_seconds):
                await pair.complete.wait()
        except TimeoutError:
            log.warning("port-forward: streams do not come in pairs", request=request_id)
            self._pairs.pop(request_id, None)
            for stream in pair.streams.values():
                await stream.reset()
            return
        await self._connect(pair.streams["data"], pair.streams["error"])

    async def _connect(self, data: SpdyStream, error: SpdyStream) -> None:
        port = int(data.headers["port"])
        error.inbox.discard()
        try:
            connection = await self._dial(port)
        except EngineError as reason:
            log.info("port cannot be reached", port=port, reason=str(reason))
            await _tell(error, str(reason))
        else:
            await forward(connection, data, data, abandoned=data.reset_by_client)
        data.inbox.discard()
        await data.close()
        await error.close()


async def _tell(error: SpdyStream, reason: str) -> None:
    try:
        await error.write(reason.encode())
    except ClientGone:
        raise
    except Unavailable:
        return


def described(stream: SpdyStream) -> tuple[str, str]:
    """What the stream is for, and the request that it belongs to. Raises ProtocolError."""
    kind = stream.headers.get(STREAM_TYPE, "").lower()
    if kind not in {"data", "error"}:
        raise ProtocolError(f"port-forward: stream type {kind!r}")
    port = stream.headers.get("port", "")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise ProtocolError(f"port-forward: port {port!r}")
    # The first clients sent no requestID, and opened the error stream right before the data stream.
    request_id = stream.headers.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
    return kind, request_id
