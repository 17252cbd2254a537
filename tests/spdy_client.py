"""A client of the streaming server that speaks SPDY as kubectl's library does, unless it is told otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from tests import spdy_peer
from tests.spdy_peer import Heard, Peer

VERSION = "X-Stream-Protocol-Version"


class UpgradeFailed(Exception):
    def __init__(self, status: int, head: str, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.head = head


class ClientStream:
    def __init__(self, client: SpdyClient, number: int) -> None:
        self._client = client
        self.number = number
        self.data = bytearray()
        self.accepted = asyncio.Event()
        self.reset: int | None = None
        self.ended = asyncio.Event()

    async def write(self, data: bytes, *, fin: bool = False) -> None:
        await self._client.send(self._client.peer.data(self.number, data, fin=fin))

    async def close(self) -> None:
        await self.write(b"", fin=True)

    async def read_all(self) -> bytes:
        await self.ended.wait()
        return bytes(self.data)

    async def read_until(self, text: bytes) -> bytes:
        while text not in self.data and not self.ended.is_set():
            await self._client.next_frame()
        return bytes(self.data)


class SpdyClient:
    """`reads` set to False stops it from reading, as a program that does not take its output."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self.head = head
        self.peer = Peer()
        self.streams: dict[int, ClientStream] = {}
        self.control: list[Heard] = []
        """Frames that belong to no stream's data."""
        self.closed = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.updates_windows = False
        self.overrun = False
        """More was sent than the windows allowed."""
        self._windows: dict[int, int] = {}
        self.received = 0
        self._reader = reader
        self._writer = writer
        self._heard = asyncio.Event()
        self._next = 1
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="spdy client")

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def open(self, kind: str, **headers: str) -> ClientStream:
        """Without waiting for the answer."""
        stream = ClientStream(self, self._next)
        self._next += 2
        self.streams[stream.number] = stream
        await self.send(self.peer.syn_stream(stream.number, {"streamtype": kind, **headers}))
        return stream

    async def opened(self, *kinds: str) -> list[ClientStream]:
        streams = [await self.open(kind) for kind in kinds]
        for stream in streams:
            await stream.accepted.wait()
        return streams

    async def next_frame(self) -> None:
        self._heard.clear()
        await self._heard.wait()

    async def heard(self, kind: int) -> Heard:
        """The first control frame of that kind."""
        while True:
            for frame in self.control:
                if frame.kind == kind:
                    return frame
            assert not self.closed.is_set()
            await self.next_frame()

    async def _listen(self) -> None:
        try:
            while True:
                await self.may_read.wait()
                data = await self._reader.read(65536)
                if not data:
                    break
                for frame in self.peer.hear(data):
                    self._take(frame)
                self._heard.set()
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            self._heard.set()
            for stream in self.streams.values():
                stream.ended.set()
                stream.accepted.set()

    def _take(self, frame: Heard) -> None:
        stream = self.streams.get(frame.number)
        if frame.kind == spdy_peer.DATA and stream is not None:
            stream.data += frame.body
            self.received += len(frame.body)
            if self.updates_windows:
                self._account(0, len(frame.body))
                self._account(frame.number, len(frame.body))
            if frame.fin:
                stream.ended.set()
            return
        self.control.append(frame)
        if frame.kind == spdy_peer.SYN_REPLY and stream is not None:
            stream.accepted.set()
        elif frame.kind == spdy_peer.RST_STREAM and stream is not None:
            stream.reset = frame.value
            stream.accepted.set()
            stream.ended.set()

    def _account(self, number: int, size: int) -> None:
        """As in section 2.6.8 of the draft; grants come late, when half of a window is used."""
        left = self._windows.get(number, 65536) - size
        self.overrun = self.overrun or left < 0
        if left <= 32768:
            self._writer.write(self.peer.pair(spdy_peer.WINDOW_UPDATE, number, 65536 - left))
            left = 65536
        self._windows[number] = left

    async def vanish(self) -> None:
        """As when the program is killed: its kernel goes on sending what it was given, before the goodbye."""
        self._task.cancel()
        await asyncio.wait({self._task})
        self._writer.transport.abort()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # a server that does not read would be waited for
        self._writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await self._writer.wait_closed()


async def connect(url: str, *protocols: str, method: str = "POST", context: ssl.SSLContext | None = None) -> SpdyClient:
    """Raises UpgradeFailed with the status of a refusal."""
    lines = ["Connection: Upgrade", "Upgrade: SPDY/3.1", *(f"{VERSION}: {protocol}" for protocol in protocols)]
    reader, writer, head = await request(url, lines, method=method, context=context)
    status = int(head.split()[1])
    if status == 101:
        return SpdyClient(reader, writer, head)
    body = await reader.read()
    writer.close()
    raise UpgradeFailed(status, head, body.decode())


async def request(
    url: str, lines: list[str], *, method: str = "GET", context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
    """Sends a request, returns what is behind its answer's head."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context, limit=2**20)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    head = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", *lines, "", ""]
    writer.write("\r\n".join(head).encode())
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    return reader, writer, answer
