from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from isulad_py.model.errors import Unavailable
from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.limits import HELD_BYTES, StreamLimits
from isulad_py.streaming.spdy import INITIAL_WINDOW_BYTES
from isulad_py.streaming.spdy_link import SpdyLink, SpdyStream
from tests import spdy_peer
from tests.unit.streaming.links import MemoryCarrier

LIMITS = StreamLimits(watch_seconds=0.02, probe_seconds=0.02, linger_seconds=0.02)


class Ends:
    def __init__(self) -> None:
        self.carrier = MemoryCarrier()
        self.link = SpdyLink(self.carrier, LIMITS)
        self.pump = asyncio.ensure_future(self.link.pump())
        self._next = 1

    async def opened(self, **headers: str) -> SpdyStream:
        number, self._next = self._next, self._next + 2
        self.carrier.tell(self.carrier.peer.syn_stream(number, headers))
        stream = await self.link.accept()
        await stream.reply()
        return stream


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    made = Ends()
    yield made
    made.pump.cancel()
    await asyncio.wait({made.pump})


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_stream_both_ways(ends: Ends) -> None:
    stream = await ends.opened(streamtype="data", port="80")
    assert stream.headers == {"streamtype": "data", "port": "80"}
    ends.carrier.tell(ends.carrier.peer.data(1, b"in", fin=True))
    assert [await stream.read(10), await stream.read(10)] == [b"in", b""]
    await stream.write(b"out")
    await stream.close()
    await stream.close()
    said = [(frame.number, frame.body, frame.fin) for frame in ends.carrier.hear() if frame.kind == spdy_peer.DATA]
    assert said == [(1, b"out", False), (1, b"", True)]
    with pytest.raises(Unavailable):
        await stream.write(b"more")


async def test_streams_that_have_ended_are_forgotten(ends: Ends) -> None:
    for order in ("client first", "we first"):
        stream = await ends.opened()
        if order == "client first":
            ends.carrier.tell(ends.carrier.peer.data(stream.number, b"x", fin=True))
            await settle()
            await stream.close()
        else:
            await stream.close()
            ends.carrier.tell(ends.carrier.peer.data(stream.number, b"x", fin=True))
            await settle()
        assert await stream.read(10) == b"x"
        assert ends.link._streams == {}


async def test_a_reset_throws_away_and_ends(ends: Ends) -> None:
    stream = await ends.opened()
    reset = ends.carrier.peer.pair(spdy_peer.RST_STREAM, 1, 5)
    ends.carrier.tell(ends.carrier.peer.data(1, b"never read"), reset)
    await stream.reset_by_client.wait()
    assert await stream.read(10) == b""
    with pytest.raises(Unavailable):
        await stream.write(b"x")
    await stream.reset()
    assert [frame for frame in ends.carrier.hear() if frame.kind == spdy_peer.RST_STREAM] == []


async def test_a_writer_without_a_window_asks_once_and_goes_on(ends: Ends) -> None:
    stream = await ends.opened()
    writing = asyncio.ensure_future(stream.write(bytes(INITIAL_WINDOW_BYTES + 10)))
    await settle()
    heard = ends.carrier.hear()
    assert sum(len(frame.body) for frame in heard if frame.kind == spdy_peer.DATA) == INITIAL_WINDOW_BYTES
    assert heard[-1].kind == spdy_peer.PING
    ends.carrier.tell(ends.carrier.peer.ping(2))
    await writing
    assert sum(len(frame.body) for frame in ends.carrier.hear()) == 10


async def test_a_writer_whose_question_is_not_answered(ends: Ends) -> None:
    stream = await ends.opened()
    await stream.write(bytes(3 * INITIAL_WINDOW_BYTES))
    assert sum(len(frame.body) for frame in ends.carrier.hear() if frame.kind == spdy_peer.DATA) == 3 * 65536


async def test_a_writer_waits_for_the_window_of_a_client_that_has_one(ends: Ends) -> None:
    stream = await ends.opened()
    peer = ends.carrier.peer
    ends.carrier.tell(peer.settings((7, 10)))
    await settle()
    writing = asyncio.ensure_future(stream.write(bytes(30)))
    await settle()
    ends.carrier.tell(peer.pair(spdy_peer.WINDOW_UPDATE, 1, 15))
    done, _ = await asyncio.wait({writing}, timeout=0.05)
    assert not done, "longer than a probe lasts"
    ends.carrier.tell(peer.pair(spdy_peer.WINDOW_UPDATE, 1, 15))
    await writing
    assert [len(frame.body) for frame in ends.carrier.hear() if frame.kind == spdy_peer.DATA] == [10, 15, 5]


async def test_two_writers_share_the_connections_window(ends: Ends) -> None:
    first, second = await ends.opened(), await ends.opened()
    peer = ends.carrier.peer
    ends.carrier.tell(peer.settings((7, 1_000_000)))
    await settle()
    writers = [asyncio.ensure_future(stream.write(bytes(50_000))) for stream in (first, second)]
    await settle()
    sent = sum(len(frame.body) for frame in ends.carrier.hear() if frame.kind == spdy_peer.DATA)
    assert sent == INITIAL_WINDOW_BYTES
    ends.carrier.tell(peer.pair(spdy_peer.WINDOW_UPDATE, 0, 100_000))
    await asyncio.gather(*writers)


async def test_pings_are_answered_while_a_writer_is_held_up(ends: Ends) -> None:
    stream = await ends.opened()
    ends.carrier.going.clear()
    writing = asyncio.ensure_future(stream.write(b"held up"))
    ends.carrier.tell(ends.carrier.peer.ping(1))
    await settle()
    assert spdy_peer.PING in [frame.kind for frame in ends.carrier.hear()]
    ends.carrier.going.set()
    await writing


async def test_a_client_is_not_read_while_nobody_takes_what_it_sends(ends: Ends) -> None:
    stream = await ends.opened()
    for _ in range(2 * HELD_BYTES // 65536):
        ends.carrier.tell(ends.carrier.peer.data(1, bytes(65536)))
    await settle()
    held = HELD_BYTES // 65536
    assert len(stream.inbox._chunks) == held
    got = 0
    while got < 2 * HELD_BYTES:
        got += len(await stream.read(65536))
        await asyncio.sleep(0)


async def test_a_client_that_leaves_while_it_is_not_read(ends: Ends) -> None:
    await ends.opened()
    ends.carrier.tell(ends.carrier.peer.data(1, bytes(HELD_BYTES)))
    await settle()
    ends.carrier.gone = True
    with pytest.raises(ClientGone):
        await ends.pump


async def test_a_client_that_goes(ends: Ends) -> None:
    reader, writer = await ends.opened(), await ends.opened()
    reading = asyncio.ensure_future(reader.read(10))
    ends.carrier.tell(ends.carrier.peer.settings((7, 0)))
    await settle()
    writing = asyncio.ensure_future(writer.write(b"x"))
    await settle()
    ends.carrier.leave()
    for waiting in (ends.pump, reading, writing):
        with pytest.raises(ClientGone):
            await waiting
    assert ends.link.ended.is_set()


async def test_what_must_not_be_sent_ends_it_with_a_goodbye(ends: Ends) -> None:
    ends.carrier.tell(b"\x80\x09\x00\x01\x00\x00\x00\x00")
    with pytest.raises(ProtocolError, match="version"):
        await ends.pump
    assert ends.carrier.hear()[-1].kind == spdy_peer.GOAWAY


async def test_no_more_streams_are_taken(ends: Ends) -> None:
    peer = ends.carrier.peer
    ends.carrier.tell(peer.syn_stream(1, {}))
    await settle()
    await ends.link.refuse_more()
    ends.carrier.tell(peer.syn_stream(3, {}))
    await settle()
    refused = [frame for frame in ends.carrier.hear() if frame.kind == spdy_peer.RST_STREAM]
    assert [(frame.number, frame.value) for frame in refused] == [(1, 3), (3, 3)]


async def test_our_goodbye(ends: Ends) -> None:
    ends.carrier.unread = 10
    ending = asyncio.ensure_future(ends.link.end())
    done, _ = await asyncio.wait({ending}, timeout=0.1)
    assert not done, "as long as the client has something to read"
    ends.carrier.unread = 0
    await asyncio.sleep(0.05)
    ends.carrier.leave()
    await ending
    await ends.pump
    assert ends.carrier.ended
    assert ends.carrier.hear()[-1].kind == spdy_peer.GOAWAY


async def test_our_goodbye_to_a_client_that_has_gone(ends: Ends) -> None:
    ends.carrier.gone = True
    await ends.link.end()
