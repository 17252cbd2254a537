"""Port-forward over the channels of a WebSocket: for each port one connection, data on channel 2n, errors on 2n+1.

Source: Kubernetes' subprotocol `v4.channel.k8s.io` of port-forward. Each channel is opened with the port, as two bytes,
little end first. Neither side can end its direction alone: a client closes the WebSocket, and the end of what the pod
sends is the end of the connection.
"""

from __future__ import annotations

import asyncio
import struct

from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.streaming.channel_link import Channel, ChannelLink
from isulad_py.streaming.command import Interrupted
from isulad_py.streaming.failures import ClientGone, reason_of
from isulad_py.streaming.forward import Dial, forward

MOST_PORTS = 100


def forwarded_ports(requested: tuple[int, ...], query: list[str]) -> tuple[int, ...]:
    """Those of the CRI request, or of the query's `port`, which may repeat and may list. Raises InvalidInput."""
    ports = list(requested)
    for text in () if requested else ",".join(query).split(","):
        if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
            raise InvalidInput(f"port: {text!r} is not a port number")
        ports.append(int(text))
    if not 0 < len(ports) <= MOST_PORTS:
        raise InvalidInput(f"port: {len(ports)} ports, of 1 to {MOST_PORTS}")
    return tuple(ports)


def inputs(ports: tuple[int, ...]) -> frozenset[int]:
    """The channels from which something will be read."""
    return frozenset(2 * index for index in range(len(ports)))


class ChannelForwardSession:
    """Lasts until all connections have ended, the client goes, or `interrupted` says so."""

    def __init__(self, link: ChannelLink, ports: tuple[int, ...], *, dial: Dial, interrupted: Interrupted) -> None:
        self._link = link
        self._ports = ports
        self._dial = dial
        self._interrupted = interrupted

    async def run(self) -> None:
        """Raises ClientGone, or the EngineError of the interruption once the client has been told goodbye."""
        for index, port in enumerate(self._ports):
            for channel in (2 * index, 2 * index + 1):
                await self._link.send(channel, struct.pack("<H", port))
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(), name="interrupted")
                async with asyncio.TaskGroup() as connections:
                    for index, port in enumerate(self._ports):
                        connections.create_task(self._connect(index, port), name=f"forward:{port}")
                watch.cancel()
        except BaseExceptionGroup as errors:
            reason = reason_of(errors)
            if isinstance(reason, EngineError) and not isinstance(reason, ClientGone):
                await self._link.end()
            raise reason from None
        await self._link.end()

    async def _watch(self) -> None:
        await self._interrupted()

    async def _connect(self, index: int, port: int) -> None:
        data = self._link.channel(2 * index)
        try:
            connection = await self._dial(port)
        except EngineError as reason:
            await self._link.send(2 * index + 1, str(reason).encode())
        else:
            ended = asyncio.Event()
            await forward(connection, data, _EndingSink(data, ended), abandoned=ended)
        data.inbox.discard()


class _EndingSink:
    """A channel, and the event of its end."""

    def __init__(self, channel: Channel, ended: asyncio.Event) -> None:
        self._channel = channel
        self._ended = ended

    async def write(self, data: bytes) -> None:
        await self._channel.write(data)

    async def close(self) -> None:
        self._ended.set()
