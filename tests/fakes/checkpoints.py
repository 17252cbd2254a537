"""Checkpoints in memory. They pass tests/contract/test_checkpoints.py as far as it is about both."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.container import Processes
from isulad_py.model.errors import AlreadyExists, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.checkpoints import CheckpointPlace, Dump
from isulad_py.ports.storage import Changes
from tests.fakes.faults import Faults
from tests.fakes.runtime import FakeRuntime


class FakeCheckpointer:
    """Implements ports.checkpoints.Checkpointer. `reason` is the obstacle; `dumps` are those that were taken. A fault
    (dump) lets the container go on, as CRIU does."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.faults = Faults()
        self.reason = ""
        self.dumps: list[Dump] = []
        self.ended: list[CheckpointPlace] = []
        self._runtime = runtime

    async def obstacle(self, handler: str) -> str:
        await self._runtime.features(handler)
        return self.reason

    async def dump(self, dump: Dump) -> None:
        container = self._runtime.containers.get(dump.id)
        if container is None:
            raise NotFound(f"container {dump.id} is not known to the runtime")
        try:
            await self.faults.at("dump")
        except BaseException:
            container.state = "running"
            raise
        if container.state not in {"running", "paused"}:
            raise FailedPrecondition(f"checkpoint: container {dump.id} is {container.state}")
        self.dumps.append(dump)

    async def end_dump(self, place: CheckpointPlace) -> None:
        await self.faults.at("end_dump")
        self.ended.append(place)

    async def restored(self, container_id: ContainerId) -> Processes:
        container = self._runtime.containers.get(container_id)
        if container is None:
            raise NotFound(f"container {container_id} is not known to the runtime")
        return container.processes


@dataclass
class FakeArchive:
    """Implements ports.checkpoints.CheckpointArchive."""

    about: Checkpointed
    files: MemoryCheckpoints
    filled: list[str] = field(default_factory=list)

    def fill(self, upper: str, lower: Sequence[str]) -> None:
        if self.files.damage is not None:
            raise self.files.damage
        self.filled.append(upper)

    async def unpack(self, container_id: ContainerId, spec: bytes) -> None:
        self.files.kept[container_id] = spec
        await self.files.faults.at("unpack")


class MemoryCheckpoints:
    """Implements ports.checkpoints.CheckpointFiles. `archives` and `documents` are the files of this host, `kept` what
    lies in the graph. Faults: begin, keep_changes, write, discard, open, unpack."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.kept: dict[ContainerId, bytes] = {}
        self.archives: dict[str, Checkpointed] = {}
        self.contents: dict[str, Mapping[str, bytes]] = {}
        self.documents: dict[str, bytes] = {}
        self.parts: set[str] = set()
        """Archives that are not complete."""
        self.damage: Exception | None = None
        """What the changes in every archive raise."""

    async def begin(self, container_id: ContainerId, location: str) -> CheckpointPlace:
        await self.faults.at("begin")
        if location in self.archives:
            raise AlreadyExists(f"location: {location} exists")
        self.kept[container_id] = b""
        return self.place(container_id)

    async def keep_changes(self, container_id: ContainerId, changes: Changes) -> None:
        await self.faults.at("keep_changes")

    async def write(
        self, container_id: ContainerId, location: str, documents: Mapping[str, bytes], log_path: str
    ) -> None:
        self.parts.add(location)
        await self.faults.at("write")
        if location in self.archives:
            raise AlreadyExists(f"location: {location} exists")
        self.parts.discard(location)
        config = msgspec.json.decode(documents["config.dump"])
        self.archives[location] = Checkpointed(
            name=config["name"],
            image_name=config["rootfsImageName"],
            image_ref=config["rootfsImageRef"],
            **_of_spec(documents["spec.dump"]),
        )
        self.contents[location] = documents

    async def discard(self, container_id: ContainerId, location: str = "") -> None:
        await self.faults.at("discard")
        self.parts.discard(location)
        self.kept.pop(container_id, None)

    def place(self, container_id: ContainerId) -> CheckpointPlace:
        return CheckpointPlace(
            images=f"/fake/checkpoints/{container_id}/checkpoint", work=f"/fake/checkpoints/{container_id}"
        )

    async def spec(self, container_id: ContainerId) -> bytes:
        if not self.kept.get(container_id):
            raise NotFound(f"nothing is kept of container {container_id}")
        return self.kept[container_id]

    async def present(self) -> frozenset[ContainerId]:
        return frozenset(self.kept)

    async def write_document(self, path: str, data: bytes) -> None:
        if path in self.documents:
            raise AlreadyExists(f"{path} exists")
        self.documents[path] = data

    async def read_document(self, path: str) -> bytes:
        if path not in self.documents:
            raise InvalidInput(f"{path}: no such file")
        return self.documents[path]

    async def remove(self, path: str) -> None:
        self.archives.pop(path, None)
        self.documents.pop(path, None)

    @asynccontextmanager
    async def open(self, path: str) -> AsyncIterator[FakeArchive]:
        await self.faults.at("open")
        if path not in self.archives:
            raise InvalidInput(f"archive {path}: no such file or directory")
        yield FakeArchive(self.archives[path], self)


def _of_spec(document: bytes) -> dict[str, Any]:
    spec = msgspec.json.decode(document)
    return {
        "binds": frozenset(
            posixpath.normpath(mount["destination"]) for mount in spec["mounts"] if mount.get("type") == "bind"
        ),
        "namespaces": frozenset(namespace["type"] for namespace in spec["linux"]["namespaces"]),
        "terminal": bool(spec["process"].get("terminal")),
    }
