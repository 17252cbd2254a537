"""Terminal sizes as clients send them: JSON objects one after the other, cut anywhere.

Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from isulad_py.streaming.failures import ProtocolError

LIMIT_BYTES: Final = 1024
"""Of one object."""


class _Size(msgspec.Struct):
    width: int
    height: int


class SizeReader:
    """`{"Width":80,"Height":24}`, in any case, with anything else beside it."""

    def __init__(self) -> None:
        self._kept = b""
        self.sizes: deque[tuple[int, int]] = deque()
        """Width and height, in characters."""

    def feed(self, data: bytes) -> None:
        """Raises ProtocolError for what is no size."""
        *whole, self._kept = (self._kept + data).split(b"}")
        if len(self._kept) > LIMIT_BYTES:
            raise ProtocolError(f"resize: more than {LIMIT_BYTES} bytes without an end")
        for text in whole:
            width, height = _size(text + b"}")
            if width and height:  # a terminal without a size, as in a test or a pipe
                self.sizes.append((width, height))

    def take_last(self) -> tuple[int, int] | None:
        """Only the last one matters when several wait."""
        if not self.sizes:
            return None
        last = self.sizes[-1]
        self.sizes.clear()
        return last


def _size(text: bytes) -> tuple[int, int]:
    try:
        values = msgspec.json.decode(text, type=dict[str, object])
        size = msgspec.convert({name.lower(): value for name, value in values.items()}, _Size)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"resize: {error}") from error
    if not (0 <= size.width < 65536 and 0 <= size.height < 65536):
        raise ProtocolError(f"resize: {size.width} times {size.height} is no size of a terminal")
    return size.width, size.height
