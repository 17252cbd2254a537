"""The client's ends of a remote command over a WebSocket: channels 0 to 4."""

from __future__ import annotations

from isulad_py.ports.streams import ByteSink, ByteSource, StreamWishes
from isulad_py.streaming.channel_link import ChannelLink
from isulad_py.streaming.channels import ERROR, RESIZE, STDERR, STDIN, STDOUT, Subprotocol
from isulad_py.streaming.limits import COPY_BYTES
from isulad_py.streaming.sizes import SizeReader
from isulad_py.streaming.status import Status, as_bytes


def inputs(wishes: StreamWishes) -> frozenset[int]:
    """The channels from which something will be read."""
    return frozenset({number for number, wished in ((STDIN, wishes.stdin), (RESIZE, wishes.terminal)) if wished})


class ChannelCommandClient:
    """Implements streaming.command.CommandClient."""

    def __init__(self, link: ChannelLink, wishes: StreamWishes, subprotocol: Subprotocol) -> None:
        self._link = link
        self._wishes = wishes
        self._detailed = subprotocol.detailed_status
        self._sizes = SizeReader()

    async def greet(self) -> None:
        """An empty message on the first channel with output: clients take it for "the streams are open", as kubelets
        have always sent it."""
        first = STDOUT if self._wishes.stdout else STDERR if self._wishes.stderr else ERROR
        await self._link.send(first, b"")

    @property
    def stdin(self) -> ByteSource | None:
        return self._link.channel(STDIN) if self._wishes.stdin else None

    @property
    def stdout(self) -> ByteSink | None:
        return self._link.channel(STDOUT) if self._wishes.stdout else None

    @property
    def stderr(self) -> ByteSink | None:
        return self._link.channel(STDERR) if self._wishes.stderr else None

    async def next_size(self) -> tuple[int, int] | None:
        if not self._wishes.terminal:
            return None
        while not self._sizes.sizes:
            data = await self._link.channel(RESIZE).read(COPY_BYTES)
            if not data:
                return None
            self._sizes.feed(data)
        return self._sizes.take_last()

    async def finish(self, status: Status) -> None:
        """The client's streams end with the connection."""
        for number in (STDIN, RESIZE):
            self._link.channel(number).inbox.discard()
        message = as_bytes(status, detailed=self._detailed)
        if message:
            await self._link.send(ERROR, message)
        await self._link.end()
