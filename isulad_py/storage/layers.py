"""Image layers on disk: `<graph>/overlay/layers/<chain hex>/{diff, meta.json}`, with short names in `l/`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import structlog

from isulad_py.host import blocking
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import NotFound, ResourceExhausted
from isulad_py.model.ids import ChainId
from isulad_py.model.pod import PodUsers
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.clock import Clock
from isulad_py.ports.layers import LayerFacts, LayerPlace
from isulad_py.ports.tasks import Tasks
from isulad_py.storage.layer_disk import Failpoint, LayerDisk, Sealed
from isulad_py.storage.loans import Loans
from isulad_py.storage.paths import OverlayPaths, chain_hex
from isulad_py.storage.trash import Trash
from isulad_py.storage.views import Views

log = structlog.get_logger(__name__)

RECIPE: Final = "recipe.gz"
OWN_BYTES: Final = 2 * 4096
OWN_INODES: Final = 3
"""Of each layer, beside what is in it: its folder, its facts, its short name."""
SPARE_LAYERS: Final = 64
SPARE_BYTES: Final = 16 * 1024 * 1024 * 1024
SPARE_SECONDS: Final = 3600.0
"""What failed pulls left is kept so that the next try goes on from there: no more than these, no longer than that."""


class LayerStore:
    """Implements ports.storage.Layers and ports.layers.LayerIngest."""

    def __init__(
        self,
        disk: LayerDisk,
        *,
        published: dict[ChainId, LayerFacts],
        sealed: dict[ChainId, Sealed],
        clock: Clock,
    ) -> None:
        self.paths = disk.paths
        self.trash = disk.trash
        self._disk = disk
        self.take = disk.reserve.take
        self._published = published
        self._sealed = sealed
        self._clock = clock
        self._views = Views(disk.paths, disk.trash)
        self._loans = Loans()
        self._kept: Counter[ChainId] = Counter()
        self._changes = asyncio.Lock()
        """Held while directories become layers or cease to be."""

    @classmethod
    async def open(
        cls, graph: str, *, tasks: Tasks, clock: Clock, boot_id: str, failpoint: Failpoint | None = None
    ) -> LayerStore:
        """Reads what is there. Half-made layers go, what cannot be read is moved aside and reported."""
        paths = OverlayPaths(f"{graph}/overlay")
        disk = LayerDisk(paths, trash=Trash(paths.trash, tasks=tasks), boot_id=boot_id, failpoint=failpoint)
        published, sealed = await blocking.run(disk.load)
        disk.trash.empty()
        store = cls(disk, published=published, sealed=sealed, clock=clock)
        for key, layers in (await blocking.run(store._views.shown)).items():
            store.lend(f"view {key}", layers)
        return store

    def require(self, chain_ids: Collection[ChainId], who: str) -> None:
        """NotFound where one of the layers cannot be mounted."""
        for chain_id in chain_ids:
            if chain_id not in self._published:
                raise NotFound(f"{who}: layer {chain_id} is not on this node")

    def lend(self, borrower: str, chain_ids: Collection[ChainId] | None) -> None:
        """These layers are not removed until `take_back`; None, for what cannot be read, stands for all."""
        self._loans.lend(borrower, self._published.keys() if chain_ids is None else chain_ids)

    def take_back(self, borrower: str) -> None:
        """Idempotent."""
        self._loans.take_back(borrower)

    # ports.layers.LayerIngest

    @contextlib.contextmanager
    def keep(self, chain: Collection[ChainId]) -> Iterator[None]:
        self._kept.update(chain)
        try:
            yield
        finally:
            self._kept.subtract(chain)
            self._kept = +self._kept
            self._drop_beyond(SPARE_BYTES)

    def find(self, chain_id: ChainId) -> LayerFacts | None:
        facts = self._published.get(chain_id)
        if facts is None and chain_id in self._sealed:
            facts = self._sealed[chain_id].facts
        return facts

    async def stage(self, chain_id: ChainId) -> str:
        folder = f"{self.paths.ingest}/{chain_hex(chain_id)[:16]}-{secrets.token_hex(6)}"
        try:
            await to_the_end(blocking.run(self._disk.make_staging, folder), name="stage a layer")
        except BaseException as error:
            if isinstance(error, ResourceExhausted):
                self._drop(self._idle())  # what is only spare must not stand in the way of the next try
            await to_the_end(self._throw_away(folder), name="discard a layer")
            raise
        return f"{folder}/diff"

    def recipe_of(self, staged: str) -> str:
        return f"{self._disk.staging_of(staged)}/{RECIPE}"

    def place(self, chain_id: ChainId) -> LayerPlace:
        self.require([chain_id], "read")
        folder = self.paths.layer(chain_id)
        return LayerPlace(directory=f"{folder}/diff", recipe=f"{folder}/{RECIPE}")

    async def seal(self, staged: str, facts: LayerFacts) -> None:
        await to_the_end(self._seal(self._disk.staging_of(staged), facts), name="seal a layer")

    async def discard(self, staged: str) -> None:
        await to_the_end(self._throw_away(self._disk.staging_of(staged)), name="discard a layer")

    async def publish(self, chain: Sequence[ChainId]) -> None:
        for chain_id in chain:
            if self.find(chain_id) is None:
                raise NotFound(f"layer {chain_id} is not in the store")
        if any(chain_id not in self._published for chain_id in chain):
            # Directories move in a thread that a cancellation does not stop: what is known must follow them.
            await to_the_end(self._publish(tuple(chain)), name="publish layers")

    # ports.storage.Layers

    async def present(self) -> frozenset[ChainId]:
        return frozenset(self._published)

    async def remove(self, chain_ids: Collection[ChainId]) -> None:
        await to_the_end(self._remove(tuple(chain_ids)), name="remove layers")

    async def young(self, chain_ids: Collection[ChainId]) -> frozenset[ChainId]:
        if not await blocking.run(self._disk.has_room_to_spare):
            return frozenset()
        ages = await blocking.run(self._disk.ages, tuple(chain_ids), self._clock.now_ns())
        known = {chain_id: age for chain_id, age in ages.items() if chain_id in self._published}
        return frozenset(
            _spare({chain_id: (age, self._published[chain_id]) for chain_id, age in known.items()}, SPARE_BYTES)
        )

    async def expire(self) -> None:
        self._drop_beyond(SPARE_BYTES if await blocking.run(self._disk.has_room_to_spare) else 0)

    def _drop_beyond(self, room_bytes: int) -> None:
        now_ns, idle = self._clock.now_ns(), self._idle()
        found = {chain_id: ((now_ns - each.at) / 1e9, each.facts) for chain_id, each in idle.items()}
        self._drop(idle.keys() - _spare(found, room_bytes))

    def _idle(self) -> dict[ChainId, Sealed]:
        """Those that no pull under way counts on."""
        return {chain_id: each for chain_id, each in self._sealed.items() if chain_id not in self._kept}

    def _drop(self, sealed: Collection[ChainId]) -> None:
        for chain_id in sealed:
            self.trash.take(self._sealed.pop(chain_id).folder)
        if sealed:
            self.trash.empty()

    async def total_usage(self) -> FilesystemUsage:
        here = [*self._published.values(), *(each.facts for each in self._sealed.values())]
        return FilesystemUsage(
            timestamp=self._clock.now_ns(),
            mountpoint=self.paths.root,
            used_bytes=sum(facts.used_bytes + OWN_BYTES for facts in here),
            inodes_used=sum(facts.inodes + OWN_INODES for facts in here),
        )

    async def view(self, key: str, chain_ids: tuple[ChainId, ...], users: PodUsers | None = None) -> str:
        self.require(chain_ids, f"view {key}")
        self.lend(f"making view {key}", chain_ids)
        try:
            return await to_the_end(self._view(key, chain_ids, users.path if users else ""), name="mount a view")
        finally:
            self.take_back(f"making view {key}")

    async def _view(self, key: str, chain_ids: tuple[ChainId, ...], userns_path: str) -> str:
        path = await blocking.run(self._views.mount, key, chain_ids, userns_path)
        self.lend(f"view {key}", chain_ids)
        return path

    async def release(self, key: str) -> None:
        await blocking.run(self._views.release, key)
        self.take_back(f"view {key}")
        self.trash.empty()

    async def views(self) -> frozenset[str]:
        return await blocking.run(self._views.keys)

    # Changes, which a cancellation does not cut short

    async def _seal(self, folder: str, facts: LayerFacts) -> None:
        sealed = Sealed(folder=folder, facts=facts, at=self._clock.now_ns())
        if self.find(facts.chain_id) is None:
            await blocking.run(self._disk.seal, sealed)
        if self.find(facts.chain_id) is None:
            self._sealed[facts.chain_id] = sealed.brief()
        else:
            await self._throw_away(folder)

    async def _publish(self, chain: tuple[ChainId, ...]) -> None:
        async with self._changes:
            new = {chain_id: self._sealed[chain_id] for chain_id in chain if chain_id in self._sealed}
            self.require([chain_id for chain_id in chain if chain_id not in new], "publish")
            if not new:
                return
            await blocking.run(self._disk.move_in, chain, new)
            for chain_id, sealed in new.items():
                self._published[chain_id] = sealed.facts
                del self._sealed[chain_id]

    async def _remove(self, chain_ids: tuple[ChainId, ...]) -> None:
        async with self._changes:
            lent = self._loans.lent().intersection(chain_ids)
            if lent:
                log.warning("layers stay, since something is mounted on them", layers=sorted(lent))
            gone = [chain_id for chain_id in chain_ids if chain_id in self._published and chain_id not in lent]
            for chain_id in gone:
                self._published.pop(chain_id, None)
            await blocking.run(self._disk.move_out, gone)
            self.trash.empty()

    async def _throw_away(self, folder: str) -> None:
        await blocking.run(self.trash.take, folder)
        self.trash.empty()


def _spare(found: Mapping[ChainId, tuple[float, LayerFacts]], room_bytes: int) -> list[ChainId]:
    """Of layers with their ages those that may stay, the youngest first. An age below zero tells that the clock was set
    back, not how far: it counts as its length."""
    kept: list[ChainId] = []
    for chain_id in sorted(found, key=lambda chain_id: abs(found[chain_id][0])):
        age, facts = found[chain_id]
        room_bytes -= facts.used_bytes
        if abs(age) >= SPARE_SECONDS or room_bytes < 0 or len(kept) == SPARE_LAYERS:
            break
        kept.append(chain_id)
    return kept
