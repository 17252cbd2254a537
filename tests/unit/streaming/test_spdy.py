from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.streaming.failures import ProtocolError
from isulad_py.streaming.spdy import (
    INITIAL_WINDOW_BYTES,
    MOST_STREAMS,
    WINDOW_BYTES,
    Event,
    Farewell,
    FlowControl,
    Opened,
    Received,
    Reset,
    SpdyServer,
    WindowsMoved,
)
from isulad_py.streaming.spdy_frames import ResetStatus
from tests import spdy_peer
from tests.spdy_peer import Heard, Peer


class Pair:
    """A server and the client that talks to it."""

    def __init__(self) -> None:
        self.server = SpdyServer()
        self.peer = Peer()
        greeting = self.hear()
        assert [frame.kind for frame in greeting] == [spdy_peer.SETTINGS, spdy_peer.WINDOW_UPDATE]
        assert greeting[1].value == WINDOW_BYTES - INITIAL_WINDOW_BYTES

    def tell(self, *messages: bytes) -> list[Event]:
        return list(self.server.receive(b"".join(messages)))

    def hear(self) -> list[Heard]:
        return self.peer.hear(self.server.take_outgoing())

    def open(self, number: int = 1) -> int:
        assert self.tell(self.peer.syn_stream(number, {"n": "x"})) == [Opened(number, {"n": "x"}, False)]
        self.server.reply(number)
        assert [frame.kind for frame in self.hear()] == [spdy_peer.SYN_REPLY]
        return number


@pytest.fixture
def pair() -> Pair:
    return Pair()


def kinds(heard: list[Heard]) -> list[tuple[int, int]]:
    return [(frame.kind, frame.number) for frame in heard]


def test_a_stream_from_its_opening_to_its_end(pair: Pair) -> None:
    pair.open(1)
    assert pair.tell(pair.peer.data(1, b"in", fin=True)) == [Received(1, b"in", True)]
    assert pair.server.is_open(1)
    assert pair.peer.hear(pair.server.data_head(1, 3) + b"out") == [Heard(spdy_peer.DATA, 1, 0, b"out")]
    assert pair.peer.hear(pair.server.data_head(1, 0, fin=True)) == [Heard(spdy_peer.DATA, 1, 1, b"")]
    assert not pair.server.is_open(1)
    assert pair.server.data_head(1, 1) == b""
    assert pair.tell(pair.peer.data(1, b"late")) == []


def test_a_reply_has_no_headers(pair: Pair) -> None:
    pair.tell(pair.peer.syn_stream(1, {"streamtype": "error"}))
    pair.server.reply(1)
    assert pair.hear() == [Heard(spdy_peer.SYN_REPLY, 1, 0, b"\0\0\0\0")]


def test_a_stream_may_be_opened_and_ended_in_one(pair: Pair) -> None:
    assert pair.tell(pair.peer.syn_stream(1, {}, fin=True)) == [Opened(1, {}, True)]
    assert pair.tell(pair.peer.data(1, b"more")) == [Reset(1)]
    assert kinds(pair.hear()) == [(spdy_peer.RST_STREAM, 1)]


def test_headers_may_end_a_stream(pair: Pair) -> None:
    pair.open(1)
    assert pair.tell(pair.peer.headers(1, {"a": "b"})) == []
    assert pair.tell(pair.peer.headers(1, {"c": "d"}, fin=True)) == [Received(1, b"", True)]


def test_pings_are_answered(pair: Pair) -> None:
    assert pair.tell(pair.peer.ping(1), pair.peer.ping(3), pair.peer.ping(4)) == []
    assert kinds(pair.hear()) == [(spdy_peer.PING, 1), (spdy_peer.PING, 3)]


def test_resets_in_both_directions(pair: Pair) -> None:
    pair.open(1)
    pair.open(3)
    assert pair.tell(2 * pair.peer.pair(spdy_peer.RST_STREAM, 1, 5)) == [Reset(1)]
    assert not pair.server.is_open(1)
    for _ in range(2):
        pair.server.reset(3, ResetStatus.REFUSED_STREAM)
    [reset] = pair.hear()
    assert (reset.kind, reset.number, reset.value) == (spdy_peer.RST_STREAM, 3, 3)


def test_data_for_streams_that_never_were(pair: Pair) -> None:
    assert pair.tell(pair.peer.data(9, b"x")) == []
    [reset] = pair.hear()
    assert (reset.kind, reset.number, reset.value) == (spdy_peer.RST_STREAM, 9, 2)


def test_farewells(pair: Pair) -> None:
    pair.open(1)
    assert pair.tell(pair.peer.pair(spdy_peer.GOAWAY, 0, 0)) == [Farewell()]
    pair.server.go_away()
    pair.server.go_away()
    [farewell] = pair.hear()
    assert (farewell.kind, farewell.number, farewell.value) == (spdy_peer.GOAWAY, 1, 0)
    assert pair.tell(pair.peer.syn_stream(3, {})) == []
    assert kinds(pair.hear()) == [(spdy_peer.RST_STREAM, 3)]


def test_too_many_streams_are_refused(pair: Pair) -> None:
    for number in range(MOST_STREAMS):
        pair.tell(pair.peer.syn_stream(2 * number + 1, {}))
    assert pair.tell(pair.peer.syn_stream(2 * MOST_STREAMS + 1, {})) == []
    [refused] = pair.hear()
    assert (refused.kind, refused.value) == (spdy_peer.RST_STREAM, 3)
    pair.tell(pair.peer.pair(spdy_peer.RST_STREAM, 1, 5))
    assert len(pair.tell(pair.peer.syn_stream(2 * MOST_STREAMS + 3, {}))) == 1


@pytest.mark.parametrize("numbers", [(2,), (1, 1), (3, 1)])
def test_stream_numbers_are_odd_and_grow(pair: Pair, numbers: tuple[int, ...]) -> None:
    with pytest.raises(ProtocolError, match="stream"):
        pair.tell(*(pair.peer.syn_stream(number, {}) for number in numbers))
    assert kinds(pair.hear())[-1][0] == spdy_peer.GOAWAY


def test_replies_to_what_we_did_not_ask(pair: Pair) -> None:
    with pytest.raises(ProtocolError, match="SYN_REPLY"):
        pair.tell(pair.peer.control(spdy_peer.SYN_REPLY, b"\0\0\0\2" + pair.peer.compress(b"\0\0\0\0")))
    [farewell] = pair.hear()
    assert (farewell.kind, farewell.value) == (spdy_peer.GOAWAY, 1)


class TestClientsThatDoFlowControl:
    def test_nothing_is_sent_past_a_window(self, pair: Pair) -> None:
        number = pair.open()
        assert pair.server.sendable(number) == INITIAL_WINDOW_BYTES
        assert pair.tell(pair.peer.settings((7, 100))) == [WindowsMoved(), WindowsMoved()]
        assert pair.server.flow_control is FlowControl.YES
        assert pair.server.sendable(number) == 100
        pair.server.data_head(number, 60)
        assert pair.server.sendable(number) == 40
        assert pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, number, 10)) == [WindowsMoved()]
        assert pair.server.sendable(number) == 50
        pair.tell(pair.peer.settings((7, 20)))
        assert pair.server.sendable(number) == 0
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, number, 31))
        assert pair.server.sendable(number) == 1

    def test_the_connection_has_a_window_too(self, pair: Pair) -> None:
        first, second = pair.open(1), pair.open(3)
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, first, 1_000_000))
        assert pair.server.sendable(first) == INITIAL_WINDOW_BYTES
        pair.server.data_head(first, INITIAL_WINDOW_BYTES)
        assert pair.server.sendable(second) == 0
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, 0, 1_000))
        assert (pair.server.sendable(first), pair.server.sendable(second)) == (1_000, 1_000)

    def test_windows_grow_as_data_is_consumed(self, pair: Pair) -> None:
        number = pair.open()
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, 0, 1))
        for _ in range(10):
            pair.tell(pair.peer.data(number, bytes(WINDOW_BYTES // 2)))
            assert pair.hear() == []
            pair.server.consumed(number, WINDOW_BYTES // 2)
            updates = pair.hear()
            assert kinds(updates) == [(spdy_peer.WINDOW_UPDATE, number), (spdy_peer.WINDOW_UPDATE, 0)]
            assert {update.value for update in updates} == {WINDOW_BYTES // 2}

    def test_an_overrun_resets_the_stream_alone(self, pair: Pair) -> None:
        first, second = pair.open(1), pair.open(3)
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, 0, 1))
        assert len(pair.tell(pair.peer.data(first, bytes(WINDOW_BYTES)))) == 1
        assert pair.tell(pair.peer.data(first, b"x")) == [Reset(first)]
        [reset] = [frame for frame in pair.hear() if frame.kind == spdy_peer.RST_STREAM]
        assert reset.value == 7
        pair.server.consumed(first, WINDOW_BYTES)
        assert pair.tell(pair.peer.data(second, b"y")) == [Received(second, b"y", False)]

    def test_data_for_a_stream_that_is_gone_is_credited_to_the_connection(self, pair: Pair) -> None:
        number = pair.open()
        pair.server.reset(number)
        pair.hear()
        pair.tell(pair.peer.data(number, bytes(WINDOW_BYTES // 2)))
        assert kinds(pair.hear()) == [(spdy_peer.WINDOW_UPDATE, 0)]

    def test_windows_out_of_range(self, pair: Pair) -> None:
        first = pair.open(1)
        assert Reset(first) in pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, first, 0x7FFFFFFF))
        pair.hear()
        second = pair.open(3)
        assert Reset(second) in pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, second, 0))
        with pytest.raises(ProtocolError, match="window"):
            pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, 0, 0x7FFFFFFF))
        with pytest.raises(ProtocolError, match="window"):
            pair.tell(pair.peer.settings((7, 0xFFFFFFFF)))


class TestClientsThatDoNone:
    def test_data_past_the_window_shows_it(self, pair: Pair) -> None:
        number = pair.open()
        events = pair.tell(pair.peer.data(number, bytes(WINDOW_BYTES + 1)))
        assert events == [WindowsMoved(), Received(number, bytes(WINDOW_BYTES + 1), False)]
        assert pair.server.flow_control is FlowControl.NO
        assert pair.server.sendable(number) > 1_000_000
        pair.server.consumed(number, WINDOW_BYTES + 1)
        assert pair.hear() == []

    def test_an_answered_ping_without_updates_shows_it(self, pair: Pair) -> None:
        number = pair.open()
        pair.server.data_head(number, INITIAL_WINDOW_BYTES)
        assert pair.server.sendable(number) == 0
        assert pair.server.ask_flow_control()
        assert pair.server.ask_flow_control()
        assert kinds(pair.hear()) == [(spdy_peer.PING, 2)]
        assert pair.tell(pair.peer.ping(2)) == [WindowsMoved()]
        assert pair.server.sendable(number) > 1_000_000
        assert not pair.server.ask_flow_control()

    def test_an_update_before_the_answer_shows_the_opposite(self, pair: Pair) -> None:
        number = pair.open()
        pair.server.data_head(number, INITIAL_WINDOW_BYTES)
        pair.server.ask_flow_control()
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, number, 500), pair.peer.ping(2))
        pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, 0, 400))
        assert pair.server.flow_control is FlowControl.YES
        assert pair.server.sendable(number) == 400

    def test_no_answer_at_all(self, pair: Pair) -> None:
        number = pair.open()
        pair.server.data_head(number, INITIAL_WINDOW_BYTES)
        pair.server.ask_flow_control()
        pair.server.assume_no_flow_control()
        assert pair.server.sendable(number) > 0

    def test_a_late_update_is_honoured_all_the_same(self, pair: Pair) -> None:
        number = pair.open()
        pair.server.assume_no_flow_control()
        pair.server.data_head(number, INITIAL_WINDOW_BYTES)
        assert pair.tell(pair.peer.pair(spdy_peer.WINDOW_UPDATE, number, 5)) == [WindowsMoved(), WindowsMoved()]
        assert pair.server.flow_control is FlowControl.YES
        assert pair.server.sendable(number) == 0


PEER_FRAMES = st.one_of(
    st.tuples(st.just("open"), st.integers(0, 12), st.booleans()),
    st.tuples(st.just("data"), st.integers(0, 12), st.integers(0, 700_000)),
    st.tuples(st.just("end"), st.integers(0, 12), st.just(0)),
    st.tuples(st.just("reset"), st.integers(0, 12), st.integers(0, 20)),
    st.tuples(st.just("window"), st.integers(0, 12), st.integers(0, 0xFFFFFFFF)),
    st.tuples(st.just("settings"), st.integers(0, 9), st.integers(0, 0xFFFFFFFF)),
    st.tuples(st.just("ping"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("goaway"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("bytes"), st.binary(max_size=20), st.just(0)),
)


def encode(peer: Peer, step: tuple[str, int | bytes, int]) -> bytes:
    kind, first, second = step
    if isinstance(first, bytes):
        return first
    made = {
        "open": lambda: peer.syn_stream(first, {"n": "x"}, fin=bool(second)),
        "data": lambda: peer.data(first, bytes(second)),
        "end": lambda: peer.data(first, b"", fin=True),
        "reset": lambda: peer.pair(spdy_peer.RST_STREAM, first, second),
        "window": lambda: peer.pair(spdy_peer.WINDOW_UPDATE, first, second),
        "settings": lambda: peer.settings((first, second)),
        "ping": lambda: peer.ping(first),
        "goaway": lambda: peer.pair(spdy_peer.GOAWAY, first, second),
    }
    return made[kind]()


@given(st.lists(PEER_FRAMES, max_size=30))
def test_any_conversation_ends_in_nothing_worse_than_a_protocol_error(
    steps: list[tuple[str, int | bytes, int]],
) -> None:
    pair = Pair()
    opened: set[int] = set()
    with contextlib.suppress(ProtocolError):
        for step in steps:
            for event in pair.server.receive(encode(pair.peer, step)):
                match event:
                    case Opened(stream_id=number):
                        opened.add(number)
                        pair.server.reply(number)
                    case Received(stream_id=number, data=data):
                        assert number in opened, "streams are announced before their data"
                        pair.server.consumed(number, len(data))
                        pair.server.data_head(number, min(len(data), pair.server.sendable(number)))
            pair.hear()  # asserts that what is sent makes sense
    pair.hear()
