from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from bench.stream_client import ChannelClient, Incoming, SpdyClient, StreamFailed, masked


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def unmasked(frame: bytes, head: int) -> bytes:
    key, body = frame[head : head + 4], frame[head + 4 :]
    return bytes(byte ^ key[index % 4] for index, byte in enumerate(body))


@pytest.mark.parametrize(("size", "head"), [(0, 2), (1, 2), (125, 2), (126, 4), (65535, 4), (65536, 10)])
def test_a_masked_frame_unmasks_to_what_it_was(size: int, head: int) -> None:
    data = bytes(index % 251 for index in range(size))
    frame = masked(2, data)
    assert (frame[0], frame[1] & 0x80) == (0x82, 0x80)
    assert unmasked(frame, head) == data


def test_spdy_data_is_counted_by_stream_to_its_end(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = SpdyClient(ours, Incoming(ours))
    client.open(("error", {"streamtype": "error"}), ("stdout", {"streamtype": "stdout"}))
    theirs.sendall(struct.pack(">II", 3, 5) + b"hello" + struct.pack(">II", 3, 1 << 24 | 1) + b"!")
    while not client.received["stdout"].ended:
        client.pump()
    assert (client.received["stdout"].count, client.received["stdout"].head) == (6, b"hello!")
    assert client.received["error"].count == 0


def test_spdy_probes_are_answered(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ping = struct.pack(">III", 0x80030006, 4, 2)
    theirs.sendall(ping)
    SpdyClient(ours, Incoming(ours)).pump()
    assert theirs.recv(100) == ping


def test_a_reset_stream_fails(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(struct.pack(">IIII", 0x80030003, 8, 1, 3))
    with pytest.raises(StreamFailed, match="reset: 3"):
        SpdyClient(ours, Incoming(ours)).pump()


def test_channels_are_counted_whatever_the_length(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = ChannelClient(ours, Incoming(ours))
    theirs.sendall(b"\x82\x03\x01ok" + b"\x82\x7e\x00\xc9\x02" + bytes(200) + b"\x89\x00" + b"\x88\x02\x03\xe8")
    with pytest.raises(StreamFailed, match="closes"):
        while True:
            client.pump()
    assert (client.received["stdout"].head, client.received["stderr"].count) == (b"ok", 200)
