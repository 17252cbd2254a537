"""A carrier whose other end is the test."""

from __future__ import annotations

import asyncio

from isulad_py.streaming.failures import ClientGone
from tests.spdy_peer import Heard, Peer


class MemoryCarrier:
    """Implements streaming.carrier.Carrier. Nothing is sent while `stopped`, as to a client that does not read."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.sent = bytearray()
        self.ended = False
        self.gone = False
        self.unread = 0
        self.going = asyncio.Event()
        self.going.set()
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue()

    def tell(self, *messages: bytes) -> None:
        for message in messages:
            self._incoming.put_nowait(message)

    def leave(self) -> None:
        self._incoming.put_nowait(b"")

    def hear(self) -> list[Heard]:
        """What was sent since the last time."""
        data = bytes(self.sent)
        self.sent.clear()
        return self.peer.hear(data)

    async def receive(self) -> bytes:
        return await self._incoming.get()

    async def send(self, *parts: bytes, wait: bool = True) -> None:
        if self.gone:
            raise ClientGone("gone")
        if wait:
            await self.going.wait()
        self.sent += b"".join(parts)

    async def end(self) -> None:
        self.ended = True

    def left(self) -> bool:
        return self.gone

    def unsent(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.gone = True
