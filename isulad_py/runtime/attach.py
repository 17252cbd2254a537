"""Attaching to the streams of running containers through the socket of their monitor.

At the end of any client conmon closes the stdin of a container that was made for one session (`stdin_once`), although
that client may only have watched. So the connections of such ones are kept open, silent, until the monitor has ended.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

from msgspec import Struct

from isulad_py.host import blocking, packets
from isulad_py.host.kept import KeptOpen
from isulad_py.model.container import Processes
from isulad_py.model.errors import HostFailure, ResourceExhausted, Unavailable
from isulad_py.model.ids import ContainerId
from isulad_py.ports.clock import Clock
from isulad_py.ports.streams import ByteSink, ByteSource, StreamWishes
from isulad_py.runtime.attach_output import STDERR, STDOUT, Outputs, Patience
from isulad_py.runtime.bundle import Bundles, Launched
from isulad_py.runtime.control import Control
from isulad_py.runtime.ending import Endings
from isulad_py.runtime.layout import Layout

STDIN_PACKET: Final = 8 * 1024
"""conmon loses what its buffer does not take of a packet: 8 KiB in old versions."""
KEPT_LIMIT: Final = 64
"""Of connections to one monitor that nobody uses any more."""
_DEFAULT_PATIENCE: Final = Patience()


class _NoInput:
    """Stdin of a container that has none: implements ports.streams.ByteSink."""

    async def write(self, data: bytes) -> None:
        raise Unavailable("stdin: the container was made without")

    async def close(self) -> None:
        """Nothing to close."""


class Attached:
    """Implements ports.streams.Streams for a container's own streams."""

    def __init__(self, *, stdin: ByteSink | None, outputs: Outputs, container: _Container, undo: ExitStack) -> None:
        self._stdin = stdin
        self._outputs = outputs
        self._container = container
        self._undo = undo

    @property
    def stdin(self) -> ByteSink | None:
        return self._stdin

    @property
    def stdout(self) -> ByteSource | None:
        return self._outputs.stream(STDOUT)

    @property
    def stderr(self) -> ByteSource | None:
        return self._outputs.stream(STDERR)

    async def resize(self, width: int, height: int) -> None:
        await self._container.resize(width, height)

    async def wait(self) -> int:
        return await self._container.wait()

    async def close(self) -> None:
        self._undo.close()


class _Container(Struct, frozen=True, kw_only=True):
    """What an attached client can do to the container besides."""

    resize: Callable[[int, int], Awaitable[None]]
    wait: Callable[[], Awaitable[int]]


class Attachments:
    def __init__(
        self,
        *,
        bundles: Bundles,
        layout: Layout,
        endings: Endings,
        control: Control,
        clock: Clock,
        patience: Patience = _DEFAULT_PATIENCE,
    ) -> None:
        self._bundles = bundles
        self._layout = layout
        self._endings = endings
        self._control = control
        self._clock = clock
        self._patience = patience
        self._kept = KeptOpen()

    async def open(self, container_id: ContainerId, processes: Processes, wishes: StreamWishes) -> Attached:
        """As ports.streams.StreamRuntime.open_attach."""
        launched = await blocking.run(self._bundles.record, container_id)
        keep = launched.stdin_once and not launched.terminal and not wishes.stdin
        monitor = (launched.processes.monitor_pid, launched.processes.monitor_started)
        if keep and self._kept.count(*monitor) >= KEPT_LIMIT:
            raise ResourceExhausted(f"attach: {KEPT_LIMIT} clients have watched this container without stdin already")
        bundle = self._layout.bundle(container_id)
        connected = await packets.connect(bundle, "attach", sleep=self._clock.sleep)
        with ExitStack() as undo:
            undo.callback(self._release, connected, monitor if keep else None)
            outputs = Outputs(
                connected,
                wishes,
                container=(launched.processes.pid, launched.processes.pid_started),
                patience=self._patience,
            )
            undo.callback(outputs.close)
            stdin: ByteSink | None = None
            if wishes.stdin and launched.stdin:
                sink = packets.PacketSink(connected, packet_bytes=STDIN_PACKET)
                undo.callback(sink.abandon)
                stdin = sink
            elif wishes.stdin:
                stdin = _NoInput()
            container = _Container(
                resize=partial(self._resize, container_id, launched),
                wait=partial(self._wait, container_id, processes),
            )
            return Attached(stdin=stdin, outputs=outputs, container=container, undo=undo.pop_all())

    def _release(self, connected: socket.socket, monitor: tuple[int, int] | None) -> None:
        if monitor is None:
            connected.close()
            return
        with contextlib.suppress(HostFailure):  # the monitor has closed its end already
            packets.silence(connected)
        self._kept.add(connected, *monitor)

    async def _resize(self, container_id: ContainerId, launched: Launched, width: int, height: int) -> None:
        if launched.terminal:
            await self._control.resize(self._layout.control(container_id), width=width, height=height)

    async def _wait(self, container_id: ContainerId, processes: Processes) -> int:
        return (await self._endings.wait_exit(container_id, processes)).exit_code

    def close(self) -> None:
        """Lets go of the connections that were kept."""
        self._kept.close()
