from __future__ import annotations

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.streaming.channels import (
    TUNNEL,
    UNNAMED,
    ChannelCodec,
    Message,
    Subprotocol,
    command_subprotocol,
    forward_subprotocol,
)
from isulad_py.streaming.failures import ProtocolError

PLAIN = ChannelCodec(UNNAMED, 5)
BASE64 = ChannelCodec(Subprotocol(name="base64.channel.k8s.io", base64=True), 5)


@pytest.mark.parametrize(
    ("offered", "name", "detailed"),
    [
        (["v5.channel.k8s.io", "v4.channel.k8s.io"], "v5.channel.k8s.io", True),
        (["v9.channel.k8s.io", "v4.channel.k8s.io"], "v4.channel.k8s.io", True),
        (["v4.base64.channel.k8s.io"], "v4.base64.channel.k8s.io", True),
        (["base64.channel.k8s.io"], "base64.channel.k8s.io", False),
        (["channel.k8s.io"], "channel.k8s.io", False),
        ([], "", False),
    ],
)
def test_the_clients_first_choice_that_we_speak(offered: list[str], name: str, detailed: bool) -> None:
    chosen = command_subprotocol(offered)
    assert chosen is not None
    assert (chosen.name, chosen.detailed_status, chosen.base64) == (name, detailed, "base64" in name)


def test_port_forward_has_its_own() -> None:
    for name in (TUNNEL, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "portforward.k8s.io"):
        chosen = forward_subprotocol([name])
        assert chosen is not None
        assert chosen.name == name
    assert forward_subprotocol(["v5.channel.k8s.io"]) is None
    assert command_subprotocol([TUNNEL]) is None


@given(st.sampled_from([PLAIN, BASE64]), st.integers(0, 4), st.binary(max_size=50))
def test_messages_come_back(codec: ChannelCodec, channel: int, data: bytes) -> None:
    assert codec.decode(codec.encode(channel, data)) == Message(channel, data)


def test_how_they_are_written() -> None:
    assert PLAIN.encode(1, b"\0\xff") == b"\x01\0\xff"
    assert BASE64.encode(1, b"\0\xff") == b"1" + base64.b64encode(b"\0\xff")
    assert (PLAIN.is_text, BASE64.is_text) == (False, True)


def test_the_close_of_a_channel() -> None:
    assert PLAIN.decode(b"\xff\x00") == Message(0, b"", closes=True)
    assert PLAIN.decode(b"") is None


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (PLAIN, b"\x05x"),
        (PLAIN, b"\xfe"),
        (PLAIN, b"\xff"),
        (PLAIN, b"\xff\x09"),
        (PLAIN, b"\xff\x00\x00"),
        (BASE64, b"5"),
        (BASE64, b"\xffAAAA"),
        (BASE64, b"0***"),
        (BASE64, b"0A"),
    ],
)
def test_malformed(codec: ChannelCodec, message: bytes) -> None:
    with pytest.raises(ProtocolError):
        codec.decode(message)


@given(st.sampled_from([PLAIN, BASE64]), st.binary(max_size=50))
def test_any_message_is_understood_or_a_protocol_error(codec: ChannelCodec, message: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        codec.decode(message)
