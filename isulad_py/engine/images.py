"""Images by every name they have: pull, find, remove."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import msgspec
import structlog

from isulad_py.engine.handlers import Handlers
from isulad_py.engine.layer_collection import LayerCollection
from isulad_py.engine.locks import SingleFlight
from isulad_py.engine.progress import Meter, Watch
from isulad_py.engine.registry import Registry, decode, encode
from isulad_py.model.container import ImageSpec
from isulad_py.model.errors import DataLoss, EngineError, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import ChainId, ImageId
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.reference import DIGEST_ALGORITHMS, Reference
from isulad_py.model.reference import parse as parse_reference
from isulad_py.model.stats import FilesystemUsage
from isulad_py.ports.clock import Clock
from isulad_py.ports.images import ImageSource, PullRequest
from isulad_py.ports.storage import Layers, Records, RootFilesystems
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

IMAGE: Final = "image"
_FULL_ID: Final = re.compile("[0-9a-f]{64}")
SHORTEST_ID: Final = 6
"""Characters of an image id that are taken for one; anything shorter is a name."""


PullReport = Callable[[str, float, int], None]
"""Hears of each pull that ended: ok or the kind of error, seconds, compressed bytes."""


def report_nothing(result: str, seconds: float, fetched_bytes: int) -> None:
    """For who does not count."""


class Images:
    """An image has one identity, the digest of its configuration, and any number of tags and repository digests."""

    def __init__(
        self,
        *,
        records: Records,
        registry: Registry,
        source: ImageSource,
        layers: Layers,
        rootfs: RootFilesystems,
        tasks: Tasks,
        clock: Clock,
        handlers: Handlers,
        sandbox_image: str,
        on_pull: PullReport = report_nothing,
    ) -> None:
        self._records = records
        self._registry = registry
        self._source = source
        self._layers = layers
        self._rootfs = rootfs
        self._clock = clock
        self._handlers = handlers
        self.sandbox_image = sandbox_image
        self._on_pull = on_pull
        self._images: dict[ImageId, ImageRecord] = {}
        self._names: dict[str, ImageId] = {}
        self._pulls: SingleFlight[ImageRecord] = SingleFlight(tasks=tasks, name="pull", abandon=True)
        self._meters: dict[str, Meter] = {}
        self._changes = asyncio.Lock()
        """Held while records and names change: short database writes only."""
        self._lacking: set[ImageId] = set()
        """On record, with a layer missing."""
        self._unread: set[str] = set()
        """Ids of images whose records are put aside."""
        self._collection = LayerCollection(layers=layers, wanted=self._layers_wanted, unread=lambda: self._unread)

    async def load(self) -> None:
        """Reads all records; one that cannot be read is moved aside and reported, and its layers stay.

        An image with a layer missing (power loss, a layer moved aside) is not on this node: it is not shown, and keeps
        no layer. The next pull brings what it lacks, and makes the record true again; `remove` takes it off.
        """
        present = await self._layers.present()
        for stored in await self._records.load(IMAGE):
            try:
                record = decode(stored.payload, ImageRecord)
            except DataLoss as error:
                log.error("record put aside", kind=IMAGE, id=stored.key, error=str(error))
                await self._records.quarantine(IMAGE, stored.key, str(error))
                continue
            missing = [layer.chain_id for layer in record.layers if layer.chain_id not in present]
            if missing:
                log.error("image lacks layers: it has to be pulled again", image=record.id, layers=missing)
                self._lacking.add(record.id)
            self._remember(record)
        self._unread = {row.key for row in await self._records.quarantined() if row.kind == IMAGE}
        for image_id in self._unread & self._images.keys():  # pulled again, and cut off before this was noted
            await self._forget_unread(image_id)

    def _shown(self) -> Iterator[ImageRecord]:
        return (record for record in self._images.values() if record.id not in self._lacking)

    def _layers_wanted(self) -> Iterator[ChainId]:
        return (layer.chain_id for record in self._shown() for layer in record.layers)

    def _remember(self, record: ImageRecord) -> None:
        former = self._images.get(record.id)
        for name in (*former.repo_tags, *former.repo_digests) if former else ():
            self._names.pop(name, None)
        self._images[record.id] = record
        for name in (*record.repo_tags, *record.repo_digests):
            self._names[name] = record.id

    def find(self, name: str) -> ImageRecord | None:
        """By id (also its unique beginning, with or without `sha256:`), by tag or by digest. InvalidInput for a name
        that is none of these."""
        record = self._on_record(name)
        return record if record is not None and record.id not in self._lacking else None

    def _on_record(self, name: str) -> ImageRecord | None:
        """A whole id, then a name, then the beginning of an id, which must not hide a name (docker, containerd)."""
        if not name:
            raise InvalidInput("image.image: must not be empty")
        whole = self._images.get(ImageId(name)) or self._images.get(ImageId(f"sha256:{name}"))
        if whole is not None:
            return whole
        image_id = self._names.get(_name_in(name))
        return self._images[image_id] if image_id else self._find_by_beginning(name)

    def _find_by_beginning(self, name: str) -> ImageRecord | None:
        digits = name.removeprefix("sha256:")
        if len(digits) < SHORTEST_ID or not set(digits) <= set("0123456789abcdef"):
            return None
        hits = [record for key, record in self._images.items() if key.startswith(f"sha256:{digits}")]
        return hits[0] if len(hits) == 1 else None

    def require(self, name: str) -> ImageRecord:
        record = self.find(name)
        if record is None:
            raise NotFound(f"image.image: {name} is not on this node")
        return record

    def list(self, image: str = "") -> list[ImageRecord]:
        """All images, or those that `image` names."""
        if not image:
            return [self._pinned(record) for record in list(self._shown())]
        record = self.find(image)
        return [self._pinned(record)] if record is not None else []

    def status(self, image: str) -> ImageRecord | None:
        record = self.find(image)
        return self._pinned(record) if record is not None else None

    def _pinned(self, record: ImageRecord) -> ImageRecord:
        """The sandbox image must survive the kubelet's image collection."""
        wanted = _lookup_name(parse_reference(self.sandbox_image)) in self._names_of(record)
        if wanted == record.pinned:
            return record
        record = msgspec.structs.replace(record, pinned=wanted)
        self._images[record.id] = record
        return record

    @staticmethod
    def _names_of(record: ImageRecord) -> tuple[str, ...]:
        return (*record.repo_tags, *record.repo_digests)

    async def ensure(self, spec: ImageSpec) -> ImageRecord:
        """The image, pulled without credentials where it is missing."""
        return self.find(spec.image) or await self.pull(spec, None)

    async def pull(self, spec: ImageSpec, credentials: Credentials | None, watch: Watch | None = None) -> ImageRecord:
        """CRI PullImage. Who asks for the same image with the same credentials meanwhile gets the same outcome; the
        pull ends when nobody waits for it any more. One image serves every runtime here, but the runtime must be known
        (CRI, ImageSpec.runtime_handler). `watch` hears how far it is, until the caller has the outcome."""
        self._handlers.resolve(spec.runtime_handler)
        reference = parse_reference(spec.image)
        key = f"{reference} {msgspec.json.encode(credentials).hex() if credentials else ''}"
        with self._metered(key, reference) as meter, meter.heard_by(watch):
            return await self._pulls.run(key, partial(self._pull, reference, credentials, meter))

    @contextlib.contextmanager
    def _metered(self, key: str, reference: Reference) -> Iterator[Meter]:
        """The meter of the pull that is under way, or of the one that begins."""
        meter = self._meters.get(key)
        if meter is None or key not in self._pulls:
            meter = self._meters[key] = Meter(image=str(reference), clock=self._clock)
        meter.users += 1
        try:
            yield meter
        finally:
            meter.users -= 1
            if not meter.users and self._meters.get(key) is meter:
                del self._meters[key]

    def bringing(self) -> AbstractAsyncContextManager[None]:
        """Inside, no layer is collected: who brings or reads an image may count on any."""
        return self._collection.suspended()

    async def _pull(self, reference: Reference, credentials: Credentials | None, meter: Meter) -> ImageRecord:
        began, result = self._clock.monotonic(), "cancelled"
        try:
            async with self.bringing():
                known = tuple(self._shown())
                request = PullRequest(reference=reference, credentials=credentials, known=known)
                pulled = await self.store(await self._source.pull(request, meter))
            result = "ok"
        except EngineError as error:
            result = type(error).__name__
            raise
        finally:
            seconds = self._clock.monotonic() - began
            self._on_pull(result, seconds, meter.total_bytes)
        log.info(
            "image pulled",
            image=str(reference),
            id=pulled.id,
            bytes=meter.total_bytes,
            milliseconds=round(seconds * 1000),
        )
        return pulled

    async def store(self, pulled: ImageRecord) -> ImageRecord:
        """Puts an image on record whose layers are here. Joins the new names with those that it has, and takes a moved
        tag from its former image."""
        async with self._changes:
            for tag in pulled.repo_tags:
                holder = self._names.get(tag)
                if holder is not None and holder != pulled.id:
                    await self._rewrite(_without_name(self._images[holder], tag))
            former = self._images.get(pulled.id)
            if former is not None:
                pulled = msgspec.structs.replace(
                    pulled,
                    repo_tags=_union(former.repo_tags, pulled.repo_tags),
                    repo_digests=_union(former.repo_digests, pulled.repo_digests),
                    pulled_at=former.pulled_at,
                )
            else:
                pulled = msgspec.structs.replace(pulled, pulled_at=self._clock.now_ns())
            self._lacking.discard(pulled.id)
            await self._rewrite(pulled)
            await self._forget_unread(pulled.id)
            return pulled

    async def _rewrite(self, record: ImageRecord) -> None:
        if self._images.get(record.id) == record:
            return
        try:
            await self._records.put(IMAGE, record.id, encode(record))
        except asyncio.CancelledError:
            self._remember(record)  # it is on disk all the same (ports.storage.Records)
            raise
        self._remember(record)

    async def remove(self, image: str) -> None:
        """CRI RemoveImage: by a name, takes that name, and the image with its last one; by id, all of it. Idempotent.
        FailedPrecondition while a container was made from it. Also of an image that lacks layers; and, by its whole
        id, of one whose record is put aside."""
        async with self._changes:
            record = self._on_record(image)
            if record is None and _whole_id(image) in self._unread:
                await self._forget_unread(_whole_id(image))
                self._collection.owe(await self._layers.present())  # any of them may have been its own
            elif record is None:
                return
            elif not await self._without(record, image):
                await self._forget(record)
        await self._collection.collect()

    async def _without(self, record: ImageRecord, image: str) -> bool:
        """Whether taking that name off was all there is to do."""
        name = _name_in(image)
        if name not in record.repo_tags or len(record.repo_tags) < 2:
            return False
        await self._rewrite(_without_name(record, name))
        return True

    async def _forget(self, record: ImageRecord) -> None:
        user = self._registry.images_in_use().get(record.id)
        if user is not None:
            raise FailedPrecondition(f"image.image: {record.reference} is in use by container {user}")
        try:
            await self._records.delete(IMAGE, record.id)
        except asyncio.CancelledError:
            self._drop(record)  # it is off the disk all the same
            raise
        self._drop(record)

    def _drop(self, record: ImageRecord) -> None:
        del self._images[record.id]
        self._lacking.discard(record.id)
        for name in self._names_of(record):
            self._names.pop(name, None)
        self._collection.owe(layer.chain_id for layer in record.layers)

    async def _forget_unread(self, image_id: str) -> None:
        """What it was does not matter any more: it is known again, or not wanted."""
        if image_id in self._unread:
            await self._records.discard(IMAGE, image_id)
            self._unread.discard(image_id)

    async def collect_layers(self, keep: frozenset[ChainId] = frozenset()) -> None:
        """Deletes layers of no image, as far as nobody may count on them."""
        await self._collection.collect(keep)

    async def collect_owed(self) -> None:
        """What `collect_layers` had to leave."""
        await self._collection.collect_owed()

    async def usage(self) -> tuple[FilesystemUsage, FilesystemUsage]:
        """Of images and of containers (CRI ImageFsInfo)."""
        return await self._layers.total_usage(), await self._rootfs.total_usage()

    def info(self, record: ImageRecord) -> dict[str, str]:
        """Verbose ImageStatus: the image's configuration as the registry gave it."""
        config = record.raw_config.decode(errors="replace") or "{}"
        return {"info": f'{{"chainID":"{record.layers[-1].chain_id if record.layers else ""}","imageSpec":{config}}}'}


def _name_in(text: str) -> str:
    """The name under which an image would be filed; empty for an id, which is none. InvalidInput for neither."""
    if text.partition(":")[0] in DIGEST_ALGORITHMS or _FULL_ID.fullmatch(text):
        return ""
    return _lookup_name(parse_reference(text))


def _lookup_name(reference: Reference) -> str:
    """The name under which an image is filed: with a digest, a tag beside it does not count (containerd, docker)."""
    return reference.at(reference.digest).repo_digest if reference.digest else reference.repo_tag


def _whole_id(image: str) -> str:
    digits = image.removeprefix("sha256:")
    return f"sha256:{digits}" if _FULL_ID.fullmatch(digits) else ""


def _without_name(record: ImageRecord, name: str) -> ImageRecord:
    return msgspec.structs.replace(record, repo_tags=tuple(tag for tag in record.repo_tags if tag != name))


def _union(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))
