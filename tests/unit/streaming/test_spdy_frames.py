from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.streaming import spdy_frames as frames
from isulad_py.streaming.failures import ProtocolError
from tests import spdy_peer
from tests.spdy_peer import Heard, Peer


def read(data: bytes) -> list[frames.Frame]:
    return list(frames.FrameReader().feed(data))


def joined(parts: list[frames.Frame]) -> list[frames.Frame]:
    """Parts of data of one stream put together up to the end of the stream."""
    found: list[frames.Frame] = []
    for part in parts:
        last = found[-1] if found else None
        if (
            isinstance(part, frames.DataPart)
            and isinstance(last, frames.DataPart)
            and last.stream_id == part.stream_id
            and not last.fin
        ):
            found[-1] = frames.DataPart(part.stream_id, last.data + part.data, part.fin)
        else:
            found.append(part)
    return found


def test_every_kind() -> None:
    peer = Peer()
    stream = peer.syn_stream(1, {"streamtype": "error"}, fin=True)
    sent = [
        stream,
        peer.headers(1, {"a": "b"}),
        peer.pair(spdy_peer.RST_STREAM, 1, 5),
        peer.settings((7, 1000), (4, 10)),
        peer.ping(3),
        peer.pair(spdy_peer.GOAWAY, 0, 2),
        peer.pair(spdy_peer.WINDOW_UPDATE, 0, 4096),
        peer.data(7, b"abc", fin=True),
        peer.data(7, b""),
    ]
    found = read(b"".join(sent))
    assert isinstance(found[0], frames.SynStream)
    assert (found[0].stream_id, found[0].block, found[0].fin) == (1, stream[18:], True)
    assert isinstance(found[1], frames.Headers)
    assert found[2:] == [
        frames.RstStream(1, 5),
        frames.Settings(((7, 1000), (4, 10))),
        frames.Ping(3),
        frames.GoAway(0, 2),
        frames.WindowUpdate(0, 4096),
        frames.DataPart(7, b"abc", True),
        frames.DataPart(7, b"", False),
    ]


def test_what_we_make_is_read_by_another() -> None:
    made = [
        frames.data_head(5, 3, fin=True) + b"abc",
        frames.rst_stream(5, frames.ResetStatus.CANCEL),
        frames.ping(2),
        frames.goaway(9, frames.GoAwayStatus.PROTOCOL_ERROR),
        frames.window_update(0, 70_000),
        frames.settings((7, 5), (4, 6)),
    ]
    heard = Peer().hear(b"".join(made))
    assert heard[0] == Heard(spdy_peer.DATA, 5, 1, b"abc")
    assert [(frame.kind, frame.number) for frame in heard[1:]] == [
        (spdy_peer.RST_STREAM, 5),
        (spdy_peer.PING, 2),
        (spdy_peer.GOAWAY, 9),
        (spdy_peer.WINDOW_UPDATE, 0),
        (spdy_peer.SETTINGS, 2),
    ]
    assert (heard[1].value, heard[3].value, heard[4].value) == (5, 1, 70_000)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.binary(max_size=50), st.booleans()), max_size=8),
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
)
def test_cut_anywhere(messages: list[tuple[int, bytes, bool]], cuts: list[int]) -> None:
    peer = Peer()
    whole = b"".join(
        peer.data(number, data, fin=fin) + peer.ping(number) + peer.syn_stream(number, {"n": str(number)})
        for number, data, fin in messages
    )
    reader = frames.FrameReader()
    found: list[frames.Frame] = []
    offset = 0
    while offset < len(whole):
        size = cuts[offset % len(cuts)]
        found += reader.feed(whole[offset : offset + size])
        offset += size
    assert joined(found) == joined(read(whole))


def test_a_long_frame_of_data_is_handed_on_as_it_comes() -> None:
    reader = frames.FrameReader()
    head = struct.pack(">II", 5, 0xFFFFFF | 1 << 24)
    assert list(reader.feed(head)) == []
    for _ in range(3):
        assert list(reader.feed(b"x" * 1000)) == [frames.DataPart(5, b"x" * 1000, False)]
    [last] = reader.feed(b"x" * (0xFFFFFF - 3000))
    assert isinstance(last, frames.DataPart)
    assert last.fin


def test_kinds_that_nobody_knows_are_skipped() -> None:
    peer = Peer()
    assert read(peer.control(10, b"credential") + peer.control(0x7FFF, b"") + peer.ping(1)) == [frames.Ping(1)]


PEER = Peer()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PEER.control(6, b"\0\0\0\1", version=2), "version 2"),
        (PEER.control(4, bytes(20_000)), "20000 bytes"),
        (struct.pack(">II", 0x80030001, 0xFFFFFF), "control frame of"),
        (PEER.data(0, b"x"), "stream 0"),
        (PEER.pair(spdy_peer.RST_STREAM, 0, 1), "stream 0"),
        (PEER.control(6, b"\0"), "PING of 1 bytes"),
        (PEER.control(1, b"\0\0\0\1"), "SYN_STREAM of 4 bytes"),
        (PEER.control(4, b"\0\0\0\2" + bytes(8)), "SETTINGS"),
        (PEER.control(4, b"\xff\xff\xff\xff"), "SETTINGS"),
        (PEER.control(9, bytes(9)), "WINDOW_UPDATE of 9"),
        (b"GET / HTTP/1.1\r\n\r\n" + b"\xff" * 16, "version"),
    ],
)
def test_malformed(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        # Text reads as a long frame of data for some stream: that is the connection's to refuse.
        read(data if data[0] != ord("G") else data[18:])


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_any_bytes_are_frames_or_a_protocol_error(pieces: list[bytes]) -> None:
    reader = frames.FrameReader()
    with contextlib.suppress(ProtocolError):
        for piece in pieces:
            for frame in reader.feed(piece):
                assert isinstance(frame, frames.Frame)
