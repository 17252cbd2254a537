"""All pods and containers: in memory for reading, in the records for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import structlog

from isulad_py.engine.locks import Locks
from isulad_py.model.container import ContainerRecord
from isulad_py.model.errors import AlreadyExists, DataLoss, EngineError, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodRecord
from isulad_py.ports.storage import Records

log = structlog.get_logger(__name__)

POD: Final = "pod"
CONTAINER: Final = "container"
VERSION: Final = 1

R = TypeVar("R", PodRecord, ContainerRecord)
S = TypeVar("S", bound=msgspec.Struct)


class Envelope(msgspec.Struct, frozen=True):
    """A stored record with the version of its form."""

    version: int
    record: msgspec.Raw


def encode(record: object) -> bytes:
    return msgspec.json.encode(Envelope(version=VERSION, record=msgspec.Raw(msgspec.json.encode(record))))


def decode(payload: bytes, kind: type[S]) -> S:
    """Raises DataLoss for a record that cannot be read or is of a later version."""
    try:
        envelope = msgspec.json.decode(payload, type=Envelope)
        if envelope.version != VERSION:
            raise DataLoss(f"record has version {envelope.version}, this daemon knows {VERSION}")
        return msgspec.json.decode(envelope.record, type=kind)
    except msgspec.MsgspecError as error:
        raise DataLoss(f"record cannot be read: {error}") from error


class Table(dict[str, R]):
    """One kind of object, by id."""

    def __init__(self, *, kind: str, type_: type[R], records: Records) -> None:
        super().__init__()
        self._kind = kind
        self._type: type[R] = type_
        self._records = records
        self._names: dict[str, str] = {}
        self._writes = Locks()

    def find(self, identifier: str) -> R | None:
        """By id or unique prefix. InvalidInput for an empty or ambiguous one."""
        if not identifier:
            raise InvalidInput(f"{self._kind}_id: must not be empty")
        exact = self.get(identifier)
        if exact is not None:
            return exact
        hits = [record for key, record in self.items() if key.startswith(identifier)]
        if len(hits) > 1:
            raise InvalidInput(f"{self._kind}_id: {identifier} is the beginning of {len(hits)} ids")
        return hits[0] if hits else None

    def require(self, identifier: str) -> R:
        """As `find`, but NotFound where there is none."""
        record = self.find(identifier)
        if record is None:
            raise NotFound(f"{self._kind} {identifier} does not exist")
        return record

    async def add(self, record: R, *, name: str) -> None:
        """Reserves the name, then writes the record. AlreadyExists names the holder."""
        holder = self._names.get(name)
        if holder is not None:
            raise AlreadyExists(f"{self._kind} name {name} is held by {holder}")
        self._names[name] = record.id
        try:
            await self._write(record)
        except EngineError:
            self._names.pop(name, None)
            raise

    async def amend(self, key: str, change: Callable[[R], R]) -> R:
        """New record from the old one: on disk first, in memory second. NotFound when it has gone meanwhile."""
        async with self._writes.of(key):
            old = self.get(key)
            if old is None:
                raise NotFound(f"{self._kind} {key} does not exist")
            new = change(old)
            if new is not old:
                await self._write(new)
            return new

    async def forget(self, key: str) -> None:
        """Idempotent."""
        async with self._writes.of(key):
            try:
                await self._records.delete(self._kind, key)
            except asyncio.CancelledError:  # as in _write
                self._drop(key)
                raise
            self._drop(key)

    async def flush(self) -> None:
        """What is on record outlives a loss of power, too."""
        await self._records.flush()

    async def _write(self, record: R) -> None:
        """What a cancellation lets go on is on disk (ports.storage.Records), so it has to be in memory too."""
        try:
            await self._records.put(self._kind, record.id, encode(record))
        except asyncio.CancelledError:
            self[record.id] = record
            raise
        self[record.id] = record

    def _drop(self, key: str) -> None:
        self.pop(key, None)
        for name in [name for name, holder in self._names.items() if holder == key]:
            del self._names[name]

    async def load(self, name_of: Callable[[R], str]) -> None:
        """Reads all records; one that cannot be read is moved aside and reported."""
        for stored in await self._records.load(self._kind):
            try:
                record = decode(stored.payload, self._type)
            except DataLoss as error:
                log.error("record put aside", kind=self._kind, id=stored.key, error=str(error))
                await self._records.quarantine(self._kind, stored.key, str(error))
                continue
            self[record.id] = record
            self._names[name_of(record)] = record.id


class Registry:
    """The two tables, and what joins them."""

    def __init__(self, *, records: Records) -> None:
        self._records = records
        self.pods: Table[PodRecord] = Table(kind=POD, type_=PodRecord, records=records)
        self.containers: Table[ContainerRecord] = Table(kind=CONTAINER, type_=ContainerRecord, records=records)

    async def load(self) -> None:
        await self.pods.load(pod_name)
        await self.containers.load(container_name)

    async def quarantined(self) -> dict[str, str]:
        """Kind by id of the objects whose records could not be read: nothing of theirs may be swept."""
        return {stored.key: stored.kind for stored in await self._records.quarantined()}

    def containers_of(self, pod_id: PodId) -> list[ContainerRecord]:
        return [record for record in self.containers.values() if record.pod_id == pod_id]

    def images_in_use(self) -> dict[str, ContainerId]:
        """Image id to one container that was made from it, or has it mounted."""
        found: dict[str, ContainerId] = {}
        for record in self.containers.values():
            volumes = [mount.image.image_ref for mount in record.mounts if mount.image is not None]
            found |= {image_id: record.id for image_id in (record.image_id, *volumes) if image_id}
        return found


def pod_name(record: PodRecord) -> str:
    return record.name


def container_name(record: ContainerRecord) -> str:
    return f"{record.name} in pod {record.pod_id}"
