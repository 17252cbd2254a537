"""Which layers may go: those of no image, as soon as nobody who brings or reads an image may count on them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable

import structlog

from isulad_py.model.ids import ChainId
from isulad_py.ports.storage import Layers

log = structlog.get_logger(__name__)


class LayerCollection:
    def __init__(
        self,
        *,
        layers: Layers,
        wanted: Callable[[], Iterable[ChainId]],
        unread: Callable[[], Iterable[str]],
    ) -> None:
        """`wanted` has the layers of all images, `unread` the ids of images whose layers nobody knows."""
        self._layers = layers
        self._wanted = wanted
        self._unread = unread
        self._counting = 0
        self._lock = asyncio.Lock()
        self._removed: set[ChainId] = set()
        self._owed = False
        """Whether layers of no image may be there that a collection had to leave."""

    @contextlib.asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        """Inside, no layer is collected: who brings or reads an image may count on any."""
        async with self._lock:
            self._counting += 1
        try:
            yield
        finally:
            self._counting -= 1

    def owe(self, removed: Iterable[ChainId]) -> None:
        """Layers of an image that was removed: they go at once, however young they are."""
        self._removed.update(removed)
        self._owed = True

    async def collect(self, keep: frozenset[ChainId] = frozenset()) -> None:
        """Deletes layers of no image, but for the young ones: a pull that was cut off goes on from there.

        Leaves that to the sweeper while it is suspended; and while an image's record is put aside, since which layers
        it has nobody knows, to whoever pulls that image again or removes it.
        """
        async with self._lock:
            self._owed = True
            if self._counting:
                return
            unread = sorted(self._unread())
            if unread:
                log.warning("layers stay while records of images are put aside: pull or remove them", images=unread)
                return
            removed = frozenset(self._removed)  # more may come meanwhile
            orphans = (await self._layers.present()) - frozenset(self._wanted()) - keep
            young = await self._layers.young(orphans) - removed if orphans else frozenset()
            if orphans - young:
                await self._layers.remove(orphans - young)
            left = orphans & await self._layers.present()  # young, or under something that is mounted
            self._removed -= removed - left
            self._owed = bool(left)

    async def collect_owed(self) -> None:
        """What `collect` had to leave, and what failed pulls left."""
        await self._layers.expire()
        if self._owed:
            await self.collect()
