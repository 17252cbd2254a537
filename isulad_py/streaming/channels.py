"""Numbered channels in the messages of a WebSocket: the subprotocols of Kubernetes' remote commands and port-forward.

Pure. Each message begins with the number of its channel: a byte, or a digit where the subprotocol is one of base64.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Struct

from isulad_py.streaming.failures import ProtocolError

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
COMMAND_CHANNELS: Final = 5
CLOSE: Final = 255
"""v5: the next byte is the channel that gets no more. Clients that know of it send it under older names as well."""
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"


class Subprotocol(Struct, frozen=True, kw_only=True):
    """How the messages of one WebSocket are written."""

    name: str
    base64: bool = False
    detailed_status: bool = False
    """The error channel carries a metav1.Status; a sentence otherwise."""


_COMMAND: Final = (
    Subprotocol(name="v5.channel.k8s.io", detailed_status=True),
    Subprotocol(name="v4.channel.k8s.io", detailed_status=True),
    Subprotocol(name="v4.base64.channel.k8s.io", base64=True, detailed_status=True),
    Subprotocol(name="v3.channel.k8s.io"),
    Subprotocol(name="v2.channel.k8s.io"),
    Subprotocol(name="channel.k8s.io"),
    Subprotocol(name="base64.channel.k8s.io", base64=True),
)
_FORWARD: Final = (
    Subprotocol(name=TUNNEL),
    Subprotocol(name="v4.channel.k8s.io"),
    Subprotocol(name="v4.base64.channel.k8s.io", base64=True),
    Subprotocol(name="portforward.k8s.io"),
)
UNNAMED: Final = Subprotocol(name="")
"""iSulad's habit, and that of the first clients: no subprotocol is asked for."""


def command_subprotocol(offered: list[str]) -> Subprotocol | None:
    """The first of the client's that we speak. None where there is none."""
    return _choose(offered, _COMMAND)


def forward_subprotocol(offered: list[str]) -> Subprotocol | None:
    """The same for port-forward."""
    return _choose(offered, _FORWARD)


def _choose(offered: list[str], spoken: tuple[Subprotocol, ...]) -> Subprotocol | None:
    if not offered:
        return UNNAMED
    by_name = {subprotocol.name: subprotocol for subprotocol in spoken}
    return next((by_name[name] for name in offered if name in by_name), None)


class Message(Struct, frozen=True, gc=False):
    channel: int
    data: bytes
    closes: bool = False
    """The channel gets no more."""


class ChannelCodec:
    """Messages of one WebSocket. `count` channels exist."""

    def __init__(self, subprotocol: Subprotocol, count: int) -> None:
        self._base64 = subprotocol.base64
        self._count = count

    def decode(self, message: bytes) -> Message | None:
        """None for an empty message, which says nothing. Raises ProtocolError for a channel that is not there."""
        if not message:
            return None
        if self._base64:
            return Message(self._known(message[0] - ord("0")), _decoded(message[1:]))
        if message[0] == CLOSE:
            if len(message) != 2:
                raise ProtocolError(f"channels: close signal of {len(message)} bytes")
            return Message(self._known(message[1]), b"", closes=True)
        return Message(self._known(message[0]), message[1:])

    def _known(self, channel: int) -> int:
        if not 0 <= channel < self._count:
            raise ProtocolError(f"channels: message for channel {channel}, of {self._count}")
        return channel

    def encode(self, channel: int, data: bytes) -> bytes:
        if self._base64:
            return bytes((ord("0") + channel,)) + base64.b64encode(data)
        return bytes((channel,)) + data

    @property
    def is_text(self) -> bool:
        """Whether what is sent goes out as text messages."""
        return self._base64


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ProtocolError(f"channels: invalid base64: {error}") from error
