"""A client of the streaming server with numbered channels, over aiohttp's WebSockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from isulad_py.streaming.channels import ChannelCodec, Subprotocol


class ChannelClient:
    """What came, by channel; `read` waits for more until the server closes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, codec: ChannelCodec) -> None:
        self.socket = socket
        self.received: dict[int, bytearray] = {}
        self.messages: list[tuple[int, bytes]] = []
        self._codec = codec

    async def send(self, channel: int, data: bytes) -> None:
        message = self._codec.encode(channel, data)
        if self._codec.is_text:
            await self.socket.send_str(message.decode())
        else:
            await self.socket.send_bytes(message)

    async def close_channel(self, channel: int) -> None:
        await self.socket.send_bytes(bytes((255, channel)))

    async def read(self) -> bool:
        """One message. False at the end."""
        message = await self.socket.receive()
        if message.type not in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}:
            return False
        data = message.data if isinstance(message.data, bytes) else message.data.encode()
        decoded = self._codec.decode(data)
        assert decoded is not None, "every message of ours names its channel"
        self.messages.append((decoded.channel, decoded.data))
        self.received.setdefault(decoded.channel, bytearray()).extend(decoded.data)
        return True

    async def read_all(self) -> dict[int, bytes]:
        """To the end; channels on which nothing came are not there."""
        while await self.read():
            pass
        return {channel: bytes(data) for channel, data in self.received.items() if data}

    async def read_until(self, channel: int, text: bytes) -> None:
        while text not in self.received.get(channel, b""):
            assert await self.read(), f"ended with {self.received}"


@asynccontextmanager
async def connected(
    url: str, *subprotocols: str, context: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Raises aiohttp.WSServerHandshakeError for a refusal."""
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(url, protocols=subprotocols, max_msg_size=0, ssl=context or True)
        try:
            yield socket
        finally:
            await asyncio.wait_for(socket.close(), 5)


@asynccontextmanager
async def channels(
    url: str, subprotocol: str = "v5.channel.k8s.io", count: int = 5, context: ssl.SSLContext | None = None
) -> AsyncIterator[ChannelClient]:
    async with connected(url, *([subprotocol] if subprotocol else []), context=context) as socket:
        assert socket.protocol == (subprotocol or None)
        codec = ChannelCodec(Subprotocol(name=subprotocol, base64="base64" in subprotocol), count)
        yield ChannelClient(socket, codec)
