"""Checkpoints: the state of a container's processes, kept as files from which it can be made to run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.container import Processes
from isulad_py.model.ids import ContainerId
from isulad_py.ports.storage import Changes


class CheckpointPlace(Struct, frozen=True, kw_only=True):
    """Two empty directories of this host."""

    images: str
    """For the state of the processes, in CRIU's form."""
    work: str
    """For CRIU's log and statistics."""


class Dump(Struct, frozen=True, kw_only=True):
    id: ContainerId
    handler: str
    place: CheckpointPlace


class Checkpointer(Protocol):
    """The part of an OCI runtime that is about checkpoints. A container is restored by its `create`."""

    async def obstacle(self, handler: str) -> str:
        """Why containers of this handler cannot be checkpointed, in a few words; empty where they can."""
        ...

    async def dump(self, dump: Dump) -> None:
        """The processes go on afterwards, whatever came of it; what was paused may have been resumed.

        Raises NotFound, or FailedPrecondition with CRIU's words where it cannot. A cancelled call has ended what it
        started."""
        ...

    async def end_dump(self, place: CheckpointPlace) -> None:
        """Ends the programs of a dump that a former daemon began. Idempotent."""
        ...

    async def restored(self, container_id: ContainerId) -> Processes:
        """Of a container that a former daemon was restoring. NotFound where that did not come to its end."""
        ...


class CheckpointArchive(Protocol):
    """An archive that is being read. Nothing in it is to be trusted."""

    about: Checkpointed

    def fill(self, upper: str, lower: Sequence[str]) -> None:
        """Brings the changes of the root file system into the empty writable layer at `upper`, over the layers at
        `lower` (nearest first). Blocks."""
        ...

    async def unpack(self, container_id: ContainerId, spec: bytes) -> None:
        """Keeps the state of the processes, and the OCI spec to restore them by, until `discard`."""
        ...


class CheckpointFiles(Protocol):
    """Checkpoints on disk. Errors of an archive that is read name the archive and the entry."""

    async def begin(self, container_id: ContainerId, location: str) -> CheckpointPlace:
        """A place for a new checkpoint of the container. InvalidInput or AlreadyExists naming `location` where no
        archive can be made there."""
        ...

    async def keep_changes(self, container_id: ContainerId, changes: Changes) -> None:
        """What the container has changed in its root file system becomes part of its checkpoint. It must not run
        meanwhile. FailedPrecondition for what no archive can tell."""
        ...

    async def write(
        self, container_id: ContainerId, location: str, documents: Mapping[str, bytes], log_path: str
    ) -> None:
        """Makes one archive of all that was kept, of the documents by their names, and of the log. It appears when it
        is complete, for root only. AlreadyExists where there is a file at `location` by now."""
        ...

    async def discard(self, container_id: ContainerId, location: str = "") -> None:
        """Removes what is kept for the container, and what there is of an archive that was not completed. Idempotent;
        a complete archive stays."""
        ...

    async def write_document(self, path: str, data: bytes) -> None:
        """A small file beside archives, for root only. AlreadyExists where there is one."""
        ...

    async def read_document(self, path: str) -> bytes:
        """NotFound where there is none, PermissionDenied where others than root may have written it."""
        ...

    async def remove(self, path: str) -> None:
        """An archive or a document. Idempotent."""
        ...

    def place(self, container_id: ContainerId) -> CheckpointPlace:
        """Where `begin` and `unpack` put a container's state."""
        ...

    async def spec(self, container_id: ContainerId) -> bytes:
        """The spec that was unpacked with the state. NotFound where nothing was."""
        ...

    async def present(self) -> frozenset[ContainerId]:
        """Containers for which something is kept."""
        ...

    def open(self, path: str) -> AbstractAsyncContextManager[CheckpointArchive]:
        """Raises InvalidInput where there is nothing to read, PermissionDenied for an archive that others than root
        may have written, DataLoss or Unsupported for what is no checkpoint of a container."""
        ...
