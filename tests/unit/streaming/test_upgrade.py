from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from isulad_py.streaming.upgrade import (
    ACCEPTED_HEADER,
    Refused,
    Taken,
    listed,
    offered_subprotocols,
    spdy_answer,
    spdy_protocol,
    wanted_upgrade,
)


class Request:
    """What of an aiohttp request is looked at."""

    def __init__(self, *headers: tuple[str, str], body: bool = False) -> None:
        self.headers = CIMultiDictProxy(CIMultiDict(headers))
        self.can_read_body = body


def request(*headers: tuple[str, str], body: bool = False) -> Any:
    return Request(*headers, body=body)


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ((("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")), "spdy"),
        ((("connection", "keep-alive, upgrade"), ("upgrade", "spdy/3.1")), "spdy"),
        ((("Connection", "keep-alive"), ("Connection", "Upgrade"), ("Upgrade", "h2c, websocket")), "websocket"),
    ],
)
def test_what_is_wanted(headers: tuple[tuple[str, str], ...], wanted: str) -> None:
    assert wanted_upgrade(request(*headers)) == wanted


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((), False),
        ((("Connection", "Upgrade"),), False),
        ((("Upgrade", "SPDY/3.1"),), False),
        ((("Connection", "Upgrade"), ("Upgrade", "SPDY/2")), False),
        ((("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")), True),
    ],
)
def test_what_is_none(headers: tuple[tuple[str, str], ...], *, body: bool) -> None:
    with pytest.raises(Refused) as caught:
        wanted_upgrade(request(*headers, body=body))
    assert caught.value.status == 400


def test_the_clients_order_counts() -> None:
    spoken = ("v5", "v4", "v3")
    header = "X-Stream-Protocol-Version"
    assert spdy_protocol(request((header, "v9"), (header, "v3,v5")), spoken) == "v3"
    with pytest.raises(Refused) as missing:
        spdy_protocol(request((header, " ,")), spoken)
    assert missing.value.status == 400
    with pytest.raises(Refused) as unknown:
        spdy_protocol(request((header, "v9")), spoken)
    answer = unknown.value.response()
    assert (answer.status, answer.headers.getall(ACCEPTED_HEADER)) == (403, ["v5", "v4", "v3"])
    assert not answer.keep_alive


def test_lists_in_headers() -> None:
    header = "Sec-WebSocket-Protocol"
    assert offered_subprotocols(request((header, "a, B"), (header, "c"))) == ["a", "B", "c"]
    assert listed(request(("X", "A,, b ")).headers, "x") == ["a", "b"]


def test_the_answer() -> None:
    lines = spdy_answer("v4").decode().split("\r\n")
    assert lines[0].startswith("HTTP/1.1 101 ")
    assert set(lines[1:4]) == {"Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4"}
    assert lines[4:] == ["", ""]


async def test_nothing_is_sent_for_a_connection_that_was_taken() -> None:
    taken = Taken()
    assert await taken.prepare(request()) is None
    await taken.write_eof()
    assert not taken.keep_alive
