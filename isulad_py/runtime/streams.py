"""Byte streams into containers and pods: implements ports.streams.StreamRuntime."""

from __future__ import annotations

from isulad_py.host.dial import dial_localhost
from isulad_py.model.container import Processes
from isulad_py.model.ids import ContainerId
from isulad_py.ports.streams import Connection, StreamingExec, Streams, StreamWishes
from isulad_py.runtime.attach import Attachments
from isulad_py.runtime.exec_streams import StreamingExecs


class RuntimeStreams:
    """Made by `OciRuntime.streams`, of the same parts."""

    def __init__(self, *, execs: StreamingExecs, attachments: Attachments) -> None:
        self._execs = execs
        self._attachments = attachments

    async def open_exec(self, command: StreamingExec) -> Streams:
        return await self._execs.open(command)

    async def open_attach(self, container_id: ContainerId, processes: Processes, wishes: StreamWishes) -> Streams:
        return await self._attachments.open(container_id, processes, wishes)

    async def dial(self, netns_path: str, port: int) -> Connection:
        return await dial_localhost(netns_path, port)

    def close(self) -> None:
        """Lets go of what was kept for containers; all that was opened has been closed by whoever opened it."""
        self._attachments.close()
