"""What a streaming connection may cost, in bytes and seconds."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

COPY_BYTES: Final = 128 * 1024
"""Read and sent at once: few calls for a fast stream, a fair share for the others of a connection."""
HELD_BYTES: Final = 1024 * 1024
"""Received on one connection and not yet taken by whom it is for; then the client is not read any more."""
UNSENT_BYTES: Final = 256 * 1024
"""Handed to the kernel's side and not yet sent; then writers wait."""


class StreamLimits(Struct, frozen=True, kw_only=True):
    idle_seconds: float = 4 * 3600.0
    """Without a byte in either direction, pings included."""
    request_seconds: float = 10.0
    """From the connection to the whole request."""
    creation_seconds: float = 30.0
    """From the upgrade to the last of the streams that were asked for, as kubelets allow."""
    quiet_seconds: float = 2.0
    """After the exit of a command: a child that it left may hold its output open for ever."""
    goodbye_seconds: float = 10.0
    """For the client to end the connection, once it has been told the exit status."""
    linger_seconds: float = 30.0
    """After our own end of the connection: a client that reads slowly must not lose its last bytes."""
    probe_seconds: float = 1.0
    """For the answer that tells whether a SPDY client does flow control."""
    watch_seconds: float = 5.0
    """Between looks at a client that is not read, because nobody takes what it sends: it may have left."""
    waiting_connections: int = 256
    """Without a whole request yet; one more, and the oldest is cut off."""
