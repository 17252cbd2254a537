"""What is kept on disk: records, image layers, root file systems of containers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from msgspec import Struct

from isulad_py.model.ids import ChainId, ContainerId
from isulad_py.model.metrics import FilesystemCapacity
from isulad_py.model.pod import PodUsers
from isulad_py.model.stats import FilesystemUsage


class StoredRecord(Struct, frozen=True, kw_only=True):
    kind: str
    key: str
    payload: bytes


class QuarantinedRecord(StoredRecord, frozen=True, kw_only=True):
    reason: str
    at: int
    """Nanoseconds since 1970."""


class Records(Protocol):
    """A versioned key-value table; the caller encodes. Writes of one key keep their order.

    A write is never cut short: a cancellation of the caller goes on once it is committed, and where it fails the error
    comes instead. Who is cancelled knows thereby that the disk has what was written.
    """

    async def put(self, kind: str, key: str, payload: bytes) -> None:
        """Committed when this returns: it survives kill -9 of this process. ResourceExhausted when the disk is full,
        with the former value intact."""
        ...

    async def delete(self, kind: str, key: str) -> None:
        """Idempotent."""
        ...

    async def flush(self) -> None:
        """What was committed so far outlives a loss of power, too, when this returns. It delays no write."""
        ...

    async def load(self, kind: str) -> list[StoredRecord]: ...

    async def quarantine(self, kind: str, key: str, reason: str) -> None:
        """Moves a record that cannot be read aside, with the reason; nothing is deleted."""
        ...

    async def quarantined(self) -> list[QuarantinedRecord]:
        """What was moved aside, oldest first."""
        ...

    async def discard(self, kind: str, key: str) -> None:
        """Deletes what was moved aside. Idempotent."""
        ...

    async def close(self) -> None: ...


Fill = Callable[[str, Sequence[str]], None]
"""Called in a thread with the directory of an empty writable layer, and those of the layers below, nearest first."""


class RootfsRequest(Struct, frozen=True, kw_only=True):
    container_id: ContainerId
    layers: tuple[ChainId, ...]
    """Bottom first; all present in the layer store."""
    mount_label: str = ""
    quota_bytes: int = 0
    """What may be written; 0 for what the node's configuration says."""
    external: str = ""
    """A directory or block device of this host that is the root instead; without layers."""
    users: PodUsers | None = None
    """The layers' owners are those of this user namespace, and so are the writable layer's."""
    fill: Fill | None = None
    """Furnishes the writable layer before it is mounted."""


class Changes(Struct, frozen=True, kw_only=True):
    """A writable layer in overlay form, and what lies below it."""

    upper: str
    lower: tuple[str, ...]
    """Nearest first."""


class RootFilesystems(Protocol):
    """Writable layers over image layers; and external roots, of each of which one container is the owner. Nothing in
    those is ever deleted, and nothing of them counts as usage."""

    async def prepare(self, request: RootfsRequest) -> str:
        """Makes the writable layer, mounts it and returns the mountpoint. Leaves nothing behind on failure. Unsupported
        for a quota that cannot be kept here; of an external root InvalidInput or NotFound for one that cannot be it,
        and FailedPrecondition for one that another container or the host uses."""
        ...

    async def remove(self, container_id: ContainerId) -> None:
        """Unmounts, and deletes what was made here. Idempotent; works from the id alone."""
        ...

    async def users_obstacle(self) -> str:
        """Why no root file system can be that of a user namespace here, in a few words; empty where it can."""
        ...

    def volumes(self, container_id: ContainerId, paths: Sequence[str]) -> dict[str, str]:
        """Where writable directories for these paths of the container lie, by path; `fill_volumes` makes them."""
        ...

    async def fill_volumes(self, container_id: ContainerId, paths: Sequence[str]) -> None:
        """Makes them, each with a copy of what the root file system holds at its path. They go with it. Raises
        NotFound or FailedPrecondition for a path that is no directory there, ResourceExhausted where it holds too
        much."""
        ...

    async def present(self) -> frozenset[ContainerId]: ...

    async def mounted(self, container_id: ContainerId) -> bool: ...

    async def changes(self, container_id: ContainerId) -> Changes:
        """Where the container's changes lie. NotFound where it has no writable layer."""
        ...

    async def remount(self, request: RootfsRequest) -> str:
        """Mounts an existing writable layer again (after a reboot)."""
        ...

    async def usage(self, container_id: ContainerId) -> FilesystemUsage | None:
        """Of the writable layer: as it is where the file system counts, else as last measured in the background, None
        before the first measurement."""
        ...

    async def total_usage(self) -> FilesystemUsage:
        """Of all writable layers together; its mountpoint exists."""
        ...

    async def capacity(self) -> FilesystemCapacity:
        """Of the file system that holds the writable layers."""
        ...

    def path_for(self, container_id: ContainerId) -> str:
        """Where the container's root is mounted."""
        ...


class Layers(Protocol):
    """Image layers by chain id: the engine's side. How a layer comes in is between `images` and `storage`."""

    async def present(self) -> frozenset[ChainId]: ...

    async def remove(self, chain_ids: Collection[ChainId]) -> None:
        """Idempotent. A layer under a root file system or a view stays, whatever the caller believes."""
        ...

    async def young(self, chain_ids: Collection[ChainId]) -> frozenset[ChainId]:
        """Those of them that came in a short while ago, the youngest first up to a bound of bytes: a pull that was cut
        off before its image was on record goes on from there. None of them on a disk that is nearly full."""
        ...

    async def expire(self) -> None:
        """Lets go of what failed pulls left and no pull has asked for in a while; of all of it on a disk that is nearly
        full."""
        ...

    async def total_usage(self) -> FilesystemUsage:
        """Of all image layers, those of failed pulls included."""
        ...

    async def view(self, key: str, chain_ids: tuple[ChainId, ...], users: PodUsers | None = None) -> str:
        """Mounts the layers read-only at a path named by `key` (image volumes), with the owners of the user namespace
        where one is given; `release` ends it."""
        ...

    async def release(self, key: str) -> None:
        """Idempotent."""
        ...

    async def views(self) -> frozenset[str]: ...
