"""Byte streams into and out of containers and pods.

Everything is pull or awaited push: a slow reader slows the writer."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from isulad_py.model.container import Processes
from isulad_py.model.ids import ContainerId


class ByteSource(Protocol):
    async def read(self, limit_bytes: int) -> bytes:
        """At least one byte and at most the limit; empty at the end, for ever after, and once it is closed.

        Unavailable where the far end broke off (a connection that was reset), ResourceExhausted where an attached
        client read nothing for so long that its container goes on without it. For one task at a time; nothing is lost
        where that is cancelled.
        """
        ...


class ByteSink(Protocol):
    async def write(self, data: bytes) -> None:
        """Returns when the next write would not pile up. Unavailable when nobody reads any more, or can (a container
        without stdin). For one task at a time."""
        ...

    async def close(self) -> None:
        """End of input for the reader (half-close). Idempotent."""
        ...


class StreamWishes(Struct, frozen=True, kw_only=True):
    """Which streams a client asked for (CRI ExecRequest, AttachRequest). With a terminal, stderr is part of stdout."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    terminal: bool = False


class StreamingExec(Struct, frozen=True, kw_only=True):
    """A process to run in a running container, with streams."""

    id: ContainerId
    handler: str
    process: bytes
    """OCI `process` object as JSON; its `terminal` agrees with the wishes."""
    wishes: StreamWishes
    stdio_uid: int | None = None
    """As that of `ports.runtime.Launch`."""


class Streams(Protocol):
    """The near ends of a running command, or of a running container's own streams. A stream that was not asked for is
    None. Closed exactly once, by whoever opened it, whatever happened."""

    @property
    def stdin(self) -> ByteSink | None: ...

    @property
    def stdout(self) -> ByteSource | None: ...

    @property
    def stderr(self) -> ByteSource | None: ...

    async def resize(self, width: int, height: int) -> None:
        """Of the terminal, in columns and rows; nothing without one. InvalidInput where either is out of range."""
        ...

    async def wait(self) -> int:
        """The exit code (128+n for a signal): of the command, or of the container that is attached to. All output can
        still be read afterwards."""
        ...

    async def close(self) -> None:
        """Ends the command's whole process tree if it still runs; detaches from a container without harm.

        Idempotent.
        """
        ...


class Connection(Protocol):
    """A TCP connection into a pod."""

    @property
    def source(self) -> ByteSource: ...

    @property
    def sink(self) -> ByteSink: ...

    async def close(self) -> None: ...


class StreamRuntime(Protocol):
    """What streaming needs of the runtime and the pods' network namespaces."""

    async def open_exec(self, command: StreamingExec) -> Streams:
        """Raises as ContainerRuntime.exec_sync does where the command cannot be started."""
        ...

    async def open_attach(self, container_id: ContainerId, processes: Processes, wishes: StreamWishes) -> Streams:
        """Joins the container's own streams, beside other clients. FailedPrecondition when it has no monitor."""
        ...

    async def dial(self, netns_path: str, port: int) -> Connection:
        """Connects to localhost in the namespace, IPv4 first, then IPv6; empty path is the host's. Unavailable naming
        the port where nobody listens or answers, NotFound where the namespace is gone."""
        ...
