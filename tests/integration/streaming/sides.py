"""A client's side of exec and attach, the same over SPDY and over WebSocket channels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from tests import spdy_client
from tests.spdy_client import ClientStream, SpdyClient
from tests.websocket_client import ChannelClient, channels

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
NAMES = ("stdin", "stdout", "stderr", "error", "resize")


class Side(Protocol):
    async def send(self, channel: int, data: bytes) -> None: ...

    async def end_input(self) -> None: ...

    def stop_reading(self) -> None:
        """The connection fills up."""
        ...

    async def read_until(self, channel: int, text: bytes) -> None: ...

    async def read_all(self) -> dict[int, bytes]:
        """All output to its end, and the error channel."""
        ...


Transport = Callable[..., AbstractAsyncContextManager[Side]]
"""Of an address, and the channels that were asked for."""


class _SpdySide:
    def __init__(self, client: SpdyClient, streams: dict[int, ClientStream]) -> None:
        self._client = client
        self._streams = streams

    async def send(self, channel: int, data: bytes) -> None:
        await self._streams[channel].write(data)

    async def end_input(self) -> None:
        await self._streams[STDIN].close()

    def stop_reading(self) -> None:
        self._client.may_read.clear()

    async def read_until(self, channel: int, text: bytes) -> None:
        assert text in await self._streams[channel].read_until(text)

    async def read_all(self) -> dict[int, bytes]:
        await self._streams[ERROR].ended.wait()
        outputs = (channel for channel in (STDOUT, STDERR, ERROR) if channel in self._streams)
        return {channel: await self._streams[channel].read_all() for channel in outputs}


@asynccontextmanager
async def _spdy(url: str, *wanted: int) -> AsyncIterator[Side]:
    client = await spdy_client.connect(url, "v4.channel.k8s.io")
    try:
        names = [NAMES[channel] for channel in (ERROR, *wanted)]
        opened = await client.opened(*names)
        yield _SpdySide(client, dict(zip((ERROR, *wanted), opened, strict=True)))
    finally:
        await client.close()


class _ChannelSide:
    def __init__(self, client: ChannelClient) -> None:
        self._client = client

    async def send(self, channel: int, data: bytes) -> None:
        await self._client.send(channel, data)

    async def end_input(self) -> None:
        await self._client.close_channel(STDIN)

    def stop_reading(self) -> None:
        """It reads only when it is told to."""

    async def read_until(self, channel: int, text: bytes) -> None:
        await self._client.read_until(channel, text)

    async def read_all(self) -> dict[int, bytes]:
        return await self._client.read_all()


@asynccontextmanager
async def _websocket(url: str, *wanted: int) -> AsyncIterator[Side]:
    async with channels(url) as client:
        yield _ChannelSide(client)


TRANSPORTS: dict[str, Transport] = {"spdy": _spdy, "websocket": _websocket}


async def outcome(side: Side, data: bytes | None = None) -> tuple[bytes, bytes, Any]:
    """stdout, stderr and the status, once `data` has been sent."""

    async def feed() -> None:
        if data is None:
            return
        for offset in range(0, len(data), 65536):
            await side.send(STDIN, data[offset : offset + 65536])
        await side.end_input()

    feeding = asyncio.ensure_future(feed())
    received = await side.read_all()
    await feeding
    return received.get(STDOUT, b""), received.get(STDERR, b""), json.loads(received[ERROR])
