"""The client's ends of a remote command over SPDY: one stream for each, told apart by the header `streamType`.

Source: Kubernetes' subprotocols v5 to v1 of `channel.k8s.io`, which differ in what the error stream carries, and in
that only those from v3 on have a resize stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from isulad_py.model.errors import Unavailable
from isulad_py.ports.streams import ByteSink, ByteSource, StreamWishes
from isulad_py.streaming.failures import ProtocolError
from isulad_py.streaming.limits import COPY_BYTES, StreamLimits
from isulad_py.streaming.sizes import SizeReader
from isulad_py.streaming.spdy_frames import ResetStatus
from isulad_py.streaming.spdy_link import SpdyLink, SpdyStream
from isulad_py.streaming.status import Status, as_bytes

PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
_DETAILED: Final = frozenset(PROTOCOLS[:2])
_RESIZING: Final = frozenset(PROTOCOLS[:3])
STREAM_TYPE: Final = "streamtype"


class SpdyCommandClient:
    """Implements streaming.command.CommandClient."""

    def __init__(self, link: SpdyLink, streams: dict[str, SpdyStream], *, protocol: str, limits: StreamLimits) -> None:
        self._link = link
        self._streams = streams
        self._limits = limits
        self._detailed = protocol in _DETAILED
        self._sizes = SizeReader()

    @property
    def stdin(self) -> ByteSource | None:
        return self._streams.get("stdin")

    @property
    def stdout(self) -> ByteSink | None:
        return self._streams.get("stdout")

    @property
    def stderr(self) -> ByteSink | None:
        return self._streams.get("stderr")

    async def next_size(self) -> tuple[int, int] | None:
        resize = self._streams.get("resize")
        while resize is not None and not self._sizes.sizes:
            data = await resize.read(COPY_BYTES)
            if not data:
                return None
            self._sizes.feed(data)
        return self._sizes.take_last()

    async def finish(self, status: Status) -> None:
        """Clients take the output streams to their ends before they look at the status; then they leave."""
        error = self._streams["error"]
        for stream in self._streams.values():
            stream.inbox.discard()
            if stream is not error:
                await stream.close()
        message = as_bytes(status, detailed=self._detailed)
        with contextlib.suppress(Unavailable):  # it has reset its error stream: it does not want to know
            await error.write(message)
        await error.close()
        await self._link.end(self._limits.goodbye_seconds)


async def open_spdy_client(
    link: SpdyLink, wishes: StreamWishes, *, protocol: str, limits: StreamLimits
) -> SpdyCommandClient:
    """Waits for the streams that were asked for. Raises ProtocolError for a client that does not open them in time."""
    wanted = {"error"}
    wanted |= {name for name in ("stdin", "stdout", "stderr") if getattr(wishes, name)}
    if wishes.terminal and protocol in _RESIZING:
        wanted.add("resize")
    streams: dict[str, SpdyStream] = {}
    try:
        async with asyncio.timeout(limits.creation_seconds):
            while wanted - streams.keys():
                stream = await link.accept()
                kind = stream.headers.get(STREAM_TYPE, "").lower()
                if kind not in wanted or kind in streams:
                    await stream.reset(ResetStatus.REFUSED_STREAM)
                    continue
                await stream.reply()
                streams[kind] = stream
    except TimeoutError as error:
        missing = ", ".join(sorted(wanted - streams.keys()))
        raise ProtocolError(f"spdy: not opened within {limits.creation_seconds:g} s: {missing}") from error
    await link.refuse_more()
    return SpdyCommandClient(link, streams, protocol=protocol, limits=limits)
