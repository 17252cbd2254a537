"""How image layers come in: between `images`, which unpacks and verifies, and `storage`, which keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from isulad_py.model.ids import ChainId, Digest


class LayerFacts(Struct, frozen=True, kw_only=True):
    """What is known of a layer once it is unpacked and its digests are verified."""

    chain_id: ChainId
    diff_id: Digest
    used_bytes: int
    """About what it takes on disk."""
    inodes: int
    implied: tuple[bytes, ...] = ()
    """Directories, relative, without an entry of their own: they take their attributes from the layers below."""


class LayerPlace(Struct, frozen=True, kw_only=True):
    directory: str
    recipe: str
    """May be missing: of a layer that came before recipes were kept."""


class LayerIngest(Protocol):
    """A layer is staged, sealed, published. Staged: a directory to unpack into, which nobody else sees. Sealed: known
    by its chain id to other pulls, not yet to containers. Published: on disk for good, ready to be mounted.

    After a crash a published layer is complete, a sealed one is still there when the machine has not been restarted
    since, a staged one is gone.
    """

    def keep(self, chain: Collection[ChainId]) -> AbstractContextManager[None]:
        """Inside, none of these that is sealed goes away. Those of a pull that failed stay afterwards, within a bound,
        so that the next one goes on from there."""
        ...

    def find(self, chain_id: ChainId) -> LayerFacts | None:
        """A sealed or published layer."""
        ...

    async def stage(self, chain_id: ChainId) -> str:
        """A new empty directory, reachable by root only. ResourceExhausted where the disk is nearly full."""
        ...

    def take(self, used_bytes: int, inodes: int) -> None:
        """From any thread: a staged layer is about to grow by so much. ResourceExhausted when that would go into what
        the disk keeps free."""
        ...

    def recipe_of(self, staged: str) -> str:
        """The path of a file beside the staged directory, in which may be kept how the layer's archive was packed; it
        shares the layer's fate."""
        ...

    def place(self, chain_id: ChainId) -> LayerPlace:
        """Of a published layer, to be read only. NotFound where there is none."""
        ...

    async def seal(self, staged: str, facts: LayerFacts) -> None:
        """The directory belongs to the store from here on. Where the layer is already known, it is discarded."""
        ...

    async def discard(self, staged: str) -> None:
        """Idempotent; the deletion goes on in the background."""
        ...

    async def publish(self, chain: Sequence[ChainId]) -> None:
        """All layers of one image, bottom first, each sealed or published: makes them durable with one flush of the
        file system and then visible, each at once. Raises NotFound where one is neither."""
        ...
