"""Containers whose root is on this host already: `<graph>/external/<id>/{root, external.json}`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from isulad_py.host import blocking, files, mounts
from isulad_py.host.failures import translated
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import AlreadyExists, EngineError, FailedPrecondition, NotFound, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage.external import FIELD, ExternalRoot, look_at, mount, overlap
from isulad_py.storage.paths import checked, is_file_name

_NOTE: Final = "external.json"
_NOTE_LIMIT: Final = 64 * 1024


class ExternalRootFilesystems:
    """The part of ports.storage.RootFilesystems that concerns them. One root is never two containers'; the note in a
    container's folder tells the next daemon. Nothing that is in a root is ever deleted: only empty directories are."""

    def __init__(self, graph: str, *, state: str) -> None:
        self._kept = (graph, state)
        self._folder = f"{graph}/external"
        self._held: dict[ContainerId, ExternalRoot | None] = {}
        """None where the note cannot be read."""

    @classmethod
    async def open(cls, graph: str, *, state: str) -> ExternalRootFilesystems:
        """No root may overlap with these two."""
        store = cls(graph, state=state)
        store._held = await blocking.run(store._load)
        return store

    def __contains__(self, container_id: ContainerId) -> bool:
        return container_id in self._held

    async def prepare(self, request: RootfsRequest) -> str:
        """Mounts the root and returns the mountpoint. InvalidInput or NotFound for a path that cannot be one,
        FailedPrecondition for one that is in use, Unsupported for a quota or a user namespace."""
        if request.quota_bytes:
            raise Unsupported(f"{FIELD}: what is written there cannot be bounded")
        if request.users is not None:
            raise Unsupported(f"{FIELD}: not in a pod with a user namespace, what is there has other owners")
        root = await blocking.run(look_at, request.external, kept=self._kept)
        self._claim(request.container_id, root)
        try:
            await to_the_end(blocking.run(self._make, request.container_id, root), name="mount an external root")
        except BaseException as error:
            try:
                await to_the_end(self.remove(request.container_id), name="give an external root back")
            except EngineError as failure:
                if isinstance(error, EngineError):
                    error.cleanup.append(failure)
            raise
        return self.path_for(request.container_id)

    async def remove(self, container_id: ContainerId) -> None:
        """Idempotent. What is in the root stays."""
        if container_id in self._held:
            await blocking.run(self._remove, container_id)
            self._held.pop(container_id, None)

    def present(self) -> frozenset[ContainerId]:
        return frozenset(self._held)

    async def remount(self, container_id: ContainerId) -> str:
        """After a reboot."""
        root = self._held.get(container_id)
        if root is None:
            raise NotFound(f"{FIELD}: nobody knows which root container {container_id} has")
        await to_the_end(blocking.run(self._remount, container_id, root), name="mount an external root again")
        return self.path_for(container_id)

    def path_for(self, container_id: ContainerId) -> str:
        return f"{self._folder_of(container_id)}/root"

    def _claim(self, container_id: ContainerId, root: ExternalRoot) -> None:
        if container_id in self._held:
            raise AlreadyExists(f"container {container_id} already has a root file system")
        for holder, held in self._held.items():
            if held is None:
                raise FailedPrecondition(f"{FIELD}: nobody knows which root container {holder} has: remove it first")
            if held.device == root.device and overlap(held.path, root.path):
                raise FailedPrecondition(f"{FIELD}: {root.path} is in use by container {holder}")
        self._held[container_id] = root

    def _folder_of(self, container_id: ContainerId) -> str:
        return f"{self._folder}/{checked(container_id, 'container id')}"

    # Synchronous, in a thread

    def _make(self, container_id: ContainerId, root: ExternalRoot) -> None:
        folder = self._folder_of(container_id)
        files.ensure_dir(self._folder, 0o711)
        files.ensure_dir(folder, 0o700)
        files.write_atomic(f"{folder}/{_NOTE}", msgspec.json.encode(root), mode=0o600)
        files.ensure_dir(f"{folder}/root", 0o700)
        mount(root, f"{folder}/root")

    def _remount(self, container_id: ContainerId, root: ExternalRoot) -> None:
        target = self.path_for(container_id)
        if not mounts.is_mountpoint(target):
            mount(look_at(root.path, kept=self._kept), target)

    def _remove(self, container_id: ContainerId) -> None:
        folder = self._folder_of(container_id)
        mounts.unmount_under(folder)
        files.remove_file(f"{folder}/{_NOTE}")
        with translated("remove"):
            for path in (f"{folder}/root", folder):
                with contextlib.suppress(FileNotFoundError):
                    Path(path).rmdir()

    def _load(self) -> dict[ContainerId, ExternalRoot | None]:
        with translated("read"):
            names = [path.name for path in Path(self._folder).iterdir()] if Path(self._folder).is_dir() else []
        found: dict[ContainerId, ExternalRoot | None] = {}
        for container_id in map(ContainerId, filter(is_file_name, names)):
            if Path(self._folder_of(container_id), _NOTE).exists():
                found[container_id] = self._read_note(container_id)
            else:  # half-made, or half-removed: nothing is mounted there
                with contextlib.suppress(EngineError):
                    self._remove(container_id)
        return found

    def _read_note(self, container_id: ContainerId) -> ExternalRoot | None:
        try:
            note = files.read_limited(f"{self._folder_of(container_id)}/{_NOTE}", _NOTE_LIMIT)
            return msgspec.json.decode(note, type=ExternalRoot)
        except (EngineError, msgspec.DecodeError, UnicodeDecodeError):
            return None
