"""How a streaming connection ends before its time."""

from __future__ import annotations

from isulad_py.model.errors import InvalidInput, Unavailable


class ProtocolError(InvalidInput):
    """The client sent what its protocol does not allow: its connection ends, with this as the logged reason."""


class ClientGone(Unavailable):
    """The client's connection has ended."""
