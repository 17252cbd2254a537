"""A client of streaming servers on a blocking socket, as fast as Python can be: SPDY/3.1 and WebSocket channels.

It counts what it receives and keeps only the beginning of it; what it sends again and again is framed, and masked,
once. So a rate is that of the server; `bench.streams` measures this client alone, too.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
import zlib
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

CHUNK_BYTES = 32 * 1024
"""What kubectl sends at once."""
KEPT_BYTES = 4096
CALL_SECONDS = 60
COMMAND_STREAMS = ("error", "stdin", "stdout", "stderr")

_PAIR = struct.Struct(">II")
_SYN_STREAM, _RST_STREAM, _PING, _GOAWAY = 1, 3, 6, 7
_CHANNELS = ("stdin", "stdout", "stderr", "error")
_BINARY, _CLOSE, _PING_FRAME, _PONG_FRAME = 2, 8, 9, 10


class StreamFailed(OSError):
    """The server refuses, or ends what should go on."""


class Incoming:
    """A socket's bytes through one large buffer: exactly as many as asked for, or passed over without a copy."""

    def __init__(self, peer: socket.socket, first: bytes = b"") -> None:
        self._peer = peer
        self._buffer = bytearray(1 << 20)
        self._view = memoryview(self._buffer)
        self._buffer[: len(first)] = first
        self._begin, self._end = 0, len(first)

    def _fill(self) -> None:
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._end == len(self._buffer):
            rest = bytes(self._view[self._begin : self._end])
            self._view[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        count = self._peer.recv_into(self._view[self._end :])
        if not count:
            raise StreamFailed("the server has closed the connection")
        self._end += count

    def take(self, count: int) -> bytes:
        while self._end - self._begin < count:
            self._fill()
        self._begin += count
        return bytes(self._view[self._begin - count : self._begin])

    def some(self, most: int) -> memoryview:
        """At least one byte; good until the next call."""
        if self._begin == self._end:
            self._fill()
        size = min(most, self._end - self._begin)
        self._begin += size
        return self._view[self._begin - size : self._begin]


class Received:
    """What came on one stream."""

    def __init__(self) -> None:
        self.count = 0
        self.head = b""
        self.ended = False

    def add(self, data: memoryview) -> None:
        self.count += len(data)
        if len(self.head) < KEPT_BYTES:
            self.head += bytes(data[: KEPT_BYTES - len(self.head)])


class StreamClient(Protocol):
    """One session, whatever carries it. `received` is by the stream's name."""

    received: dict[str, Received]

    def pump(self) -> None:
        """Receive some more. Raises StreamFailed at the connection's end."""
        ...

    def frame(self, name: str, data: bytes) -> bytes:
        """Bytes for `transmit`, which may be sent many times."""
        ...

    def transmit(self, frame: bytes) -> None: ...

    def end_input(self, name: str) -> None: ...

    def close(self) -> None: ...


def upgrade(url: str, method: str, lines: list[str]) -> tuple[socket.socket, Incoming, str]:
    """Sends the request; gives the connection behind the answer's head, which must be 101."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None or parts.port is None:
        raise StreamFailed(f"{url}: want http://HOST:PORT/PATH")
    peer = socket.create_connection((parts.hostname, parts.port), timeout=CALL_SECONDS)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        peer.sendall("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", *lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = peer.recv(4096)
            if not data:
                raise StreamFailed(f"no answer to the upgrade: {answer!r}")
            answer += data
        head, _, rest = answer.partition(b"\r\n\r\n")
        if head.split()[1] != b"101":
            raise StreamFailed(f"no upgrade: {head.splitlines()[0].decode()}: {rest[:200].decode(errors='replace')}")
    except BaseException:
        peer.close()
        raise
    return peer, Incoming(peer, rest), head.decode().lower()


class SpdyClient:
    """As the library behind kubectl does: all streams are opened at once, and windows are of no concern."""

    def __init__(self, peer: socket.socket, incoming: Incoming) -> None:
        self._peer = peer
        self._incoming = incoming
        # Without the protocol's dictionary: a zlib stream itself says whether its reader needs one.
        self._deflate = zlib.compressobj()
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._current = ("", 0, False)
        """Of the data frame at hand: stream, bytes to come, whether it is the stream's last."""
        self.received: dict[str, Received] = {}

    @classmethod
    def command(cls, url: str) -> SpdyClient:
        client = cls._connected(url, "v4.channel.k8s.io")
        client.open(*((name, {"streamtype": name}) for name in COMMAND_STREAMS))
        return client

    @classmethod
    def forward(cls, url: str, port: int) -> SpdyClient:
        client = cls._connected(url, "portforward.k8s.io")
        asked = {"port": str(port), "requestid": "0"}
        client.open(("error", {"streamtype": "error", **asked}), ("data", {"streamtype": "data", **asked}))
        client.end_input("error")
        return client

    @classmethod
    def _connected(cls, url: str, protocol: str) -> SpdyClient:
        lines = ["Connection: Upgrade", "Upgrade: SPDY/3.1", f"X-Stream-Protocol-Version: {protocol}"]
        peer, incoming, head = upgrade(url, "POST", lines)
        if protocol.lower() not in head:
            peer.close()
            raise StreamFailed(f"{protocol} is not spoken: {head}")
        return cls(peer, incoming)

    def open(self, *streams: tuple[str, Mapping[str, str]]) -> None:
        frames = []
        for name, headers in streams:
            number = self.register(name)
            texts = [text.encode() for pair in headers.items() for text in pair]
            plain = struct.pack(">I", len(headers)) + b"".join(struct.pack(">I", len(text)) + text for text in texts)
            block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            frames.append(_spdy_control(_SYN_STREAM, struct.pack(">IIH", number, 0, 0) + block))
        self.transmit(b"".join(frames))

    def register(self, name: str) -> int:
        number = 2 * len(self._numbers) + 1
        self._numbers[name], self._names[number] = number, name
        self.received[name] = Received()
        return number

    def pump(self) -> None:
        name, left, last = self._current
        if left:
            data = self._incoming.some(left)
            self.received[name].add(data)
            left -= len(data)
        else:
            first, second = _PAIR.unpack(self._incoming.take(8))
            left = second & 0xFFFFFF
            if first >> 31:
                self._control(first & 0xFFFF, self._incoming.take(left))
                return
            name, last = self._names[first], bool(second >> 24 & 1)
        self._current = (name, left, last)
        if last and not left:
            self.received[name].ended = True

    def _control(self, kind: int, body: bytes) -> None:
        if kind == _PING and body[-1] % 2 == 0:
            self.transmit(_spdy_control(_PING, body))
        elif kind == _RST_STREAM:
            raise StreamFailed(f"stream {self._names.get(_PAIR.unpack(body)[0])} is reset: {body[-1]}")
        elif kind == _GOAWAY:
            raise StreamFailed("the server goes away")

    def frame(self, name: str, data: bytes) -> bytes:
        return _PAIR.pack(self._numbers[name], len(data)) + data

    def transmit(self, frame: bytes) -> None:
        self._peer.sendall(frame)

    def end_input(self, name: str) -> None:
        self.transmit(_PAIR.pack(self._numbers[name], 1 << 24))

    def close(self) -> None:
        self._peer.close()


def _spdy_control(kind: int, body: bytes) -> bytes:
    return _PAIR.pack(0x80030000 | kind, len(body)) + body


class ChannelClient:
    """WebSocket with numbered channels, v5: the version that can end a channel."""

    def __init__(self, peer: socket.socket, incoming: Incoming) -> None:
        self._peer = peer
        self._incoming = incoming
        self._current = ("", 0)
        """Of the message at hand: channel, bytes to come."""
        self.received = {name: Received() for name in _CHANNELS}

    @classmethod
    def command(cls, url: str) -> ChannelClient:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        peer, incoming, head = upgrade(url, "GET", [*lines, "Sec-WebSocket-Protocol: v5.channel.k8s.io"])
        if "v5.channel.k8s.io" not in head:
            peer.close()
            raise StreamFailed(f"v5.channel.k8s.io is not spoken: {head}")
        return cls(peer, incoming)

    def pump(self) -> None:
        name, left = self._current
        if left:
            data = self._incoming.some(left)
            self.received[name].add(data)
            self._current = (name, left - len(data))
            return
        first, second = self._incoming.take(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(self._incoming.take(2 if size == 126 else 8), "big")
        if first != 0x80 | _BINARY:
            self._rest(first & 0x0F, self._incoming.take(size))
        elif size:
            self._current = (_CHANNELS[self._incoming.take(1)[0]], size - 1)

    def _rest(self, kind: int, body: bytes) -> None:
        if kind == _PING_FRAME:
            self.transmit(masked(_PONG_FRAME, body))
        elif kind == _CLOSE:
            self.transmit(masked(_CLOSE, body))
            raise StreamFailed(f"the server closes: {body[2:].decode(errors='replace')}")
        elif kind != _PONG_FRAME:
            raise StreamFailed(f"websocket: frame of kind {kind}, or in pieces")

    def frame(self, name: str, data: bytes) -> bytes:
        return masked(_BINARY, bytes((_CHANNELS.index(name),)) + data)

    def transmit(self, frame: bytes) -> None:
        self._peer.sendall(frame)

    def end_input(self, name: str) -> None:
        self.transmit(masked(_BINARY, bytes((255, _CHANNELS.index(name)))))

    def close(self) -> None:
        self._peer.close()


def masked(kind: int, data: bytes) -> bytes:
    """A client's frame (RFC 6455, 5.2 and 5.3): the payload as one long number, because XOR byte by byte takes long."""
    size, key = len(data), os.urandom(4)
    if size < 126:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    mask = (key * (size // 4 + 1))[:size]
    payload = (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
    return head + key + payload


class PlainClient:
    """A bare TCP connection, as one stream "data"."""

    def __init__(self, address: str, port: int) -> None:
        self._peer = socket.create_connection((address, port), timeout=CALL_SECONDS)
        self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = Incoming(self._peer)
        self.received = {"data": Received()}

    def pump(self) -> None:
        try:
            self.received["data"].add(self._incoming.some(1 << 20))
        except StreamFailed:
            if self.received["data"].ended:
                raise
            self.received["data"].ended = True

    def frame(self, name: str, data: bytes) -> bytes:
        return data

    def transmit(self, frame: bytes) -> None:
        self._peer.sendall(frame)

    def end_input(self, name: str) -> None:
        self._peer.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._peer.close()
