"""Checkpoints on disk: `<graph>/checkpoints/<container id>/` while one is taken or waits to be restored. Implements
ports.checkpoints.CheckpointFiles.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import posixpath
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from isulad_py.host import blocking, files, trees
from isulad_py.host.failures import translate, translated
from isulad_py.host.tasks import to_the_end
from isulad_py.images.checkpoint_changes import write_changes
from isulad_py.images.checkpoint_read import DELETED, DIFF, IMAGES, CheckpointReader, check_owner
from isulad_py.images.checkpoint_tar import Stopped, TarWriter
from isulad_py.images.unpack import UnpackLimits
from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.errors import AlreadyExists, InvalidInput
from isulad_py.model.ids import ContainerId
from isulad_py.ports.checkpoints import CheckpointPlace
from isulad_py.ports.storage import Changes

LOG: Final = "container.log"
_KEPT: Final = (DELETED, DIFF, "dump.log", "stats-dump")
_SPEC: Final = "config.json"
_SPEC_LIMIT: Final = 16 * 1024 * 1024
_AT_ONCE: Final = 2
"""Archives written or read at the same time: each keeps a thread and the disk busy for long."""


class CheckpointDirectory:
    def __init__(self, graph: str, *, limits: UnpackLimits | None = None) -> None:
        self._root = f"{graph}/checkpoints"
        self._limits = limits or UnpackLimits()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def begin(self, container_id: ContainerId, location: str) -> CheckpointPlace:
        await blocking.run(_check_location, location)
        place = self.place(container_id)
        await to_the_end(blocking.run(self._make, container_id), name="make a place for a checkpoint")
        return place

    def _make(self, container_id: ContainerId) -> None:
        files.ensure_dir(self._root, 0o700)
        trees.remove_tree(self._folder(container_id))
        with translated("make a place for a checkpoint:"):
            Path(self._folder(container_id)).mkdir(0o700)
            Path(self.place(container_id).images).mkdir(0o700)

    async def keep_changes(self, container_id: ContainerId, changes: Changes) -> None:
        folder = self._folder(container_id)

        def keep(stopped: Stopped) -> None:
            deleted = write_changes(changes, f"{folder}/{DIFF}", stopped)
            files.write_atomic(f"{folder}/{DELETED}", msgspec.json.encode(deleted), mode=0o600)

        await self._work(keep)

    async def write(
        self, container_id: ContainerId, location: str, documents: Mapping[str, bytes], log_path: str
    ) -> None:
        def write(stopped: Stopped) -> None:
            self._write(container_id, location, documents, log_path, stopped)

        await self._work(write)

    async def _work(self, work: Callable[[Stopped], None]) -> None:
        """Long work in a thread, which ends soon after its caller was cancelled."""
        async with self._slots:
            stop = threading.Event()
            task = asyncio.ensure_future(blocking.run(work, stop.is_set))
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait({task})
                raise

    def _write(
        self,
        container_id: ContainerId,
        location: str,
        documents: Mapping[str, bytes],
        log_path: str,
        stopped: Stopped,
    ) -> None:
        part = _part(location, container_id)
        files.remove_file(part)
        with translated(f"checkpoint {location}:"):
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._members(TarWriter(fd, stopped), container_id, documents, log_path)
            finally:
                os.close(fd)
            try:
                os.link(part, location)  # unlike rename, it never takes the place of another file
            except FileExistsError as error:
                raise AlreadyExists(f"location: {location} exists") from error
        files.remove_file(part)
        files.sync_directory(posixpath.dirname(location))

    def _members(
        self, writer: TarWriter, container_id: ContainerId, documents: Mapping[str, bytes], log_path: str
    ) -> None:
        for name, data in documents.items():
            writer.document(name, data)
        folder, images = self._folder(container_id), self.place(container_id).images
        for name in _KEPT:
            if Path(folder, name).exists():
                writer.file(name, f"{folder}/{name}")
        writer.directory(IMAGES)
        for path in sorted(Path(images).iterdir()):
            writer.file(f"{IMAGES}/{path.name}", str(path))
        if log_path and Path(log_path).is_file():
            writer.file(LOG, log_path)
        writer.finish()

    async def discard(self, container_id: ContainerId, location: str = "") -> None:
        if location:
            await blocking.run(files.remove_file, _part(location, container_id))
        await to_the_end(blocking.run(trees.remove_tree, self._folder(container_id)), name="discard a checkpoint")

    async def write_document(self, path: str, data: bytes) -> None:
        def write() -> None:
            with translated(f"{path}:"):
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                except FileExistsError as error:
                    raise AlreadyExists(f"{path} exists") from error
                try:
                    _write_all(fd, data)
                except BaseException:
                    files.remove_file(path)
                    raise
                finally:
                    os.close(fd)

        await blocking.run_to_end(write)

    async def read_document(self, path: str) -> bytes:
        def read() -> bytes:
            check_owner(path)
            return files.read_limited(path, _SPEC_LIMIT)

        return await blocking.run(read)

    async def remove(self, path: str) -> None:
        await blocking.run_to_end(files.remove_file, path)

    def place(self, container_id: ContainerId) -> CheckpointPlace:
        folder = self._folder(container_id)
        return CheckpointPlace(images=f"{folder}/{IMAGES}", work=folder)

    def _folder(self, container_id: ContainerId) -> str:
        if not container_id or "/" in container_id or container_id.startswith("."):
            raise InvalidInput(f"container id: {container_id!r} cannot name a directory")
        return f"{self._root}/{container_id}"

    async def spec(self, container_id: ContainerId) -> bytes:
        return await blocking.run(files.read_limited, f"{self._folder(container_id)}/{_SPEC}", _SPEC_LIMIT)

    async def present(self) -> frozenset[ContainerId]:
        return await blocking.run(self._present)

    def _present(self) -> frozenset[ContainerId]:
        with translated("read"):
            try:
                return frozenset(ContainerId(path.name) for path in Path(self._root).iterdir())
            except FileNotFoundError:
                return frozenset()

    @contextlib.asynccontextmanager
    async def open(self, path: str) -> AsyncIterator[OpenCheckpoint]:
        reader = await blocking.run_to_end(self._reader, path)
        try:
            yield OpenCheckpoint(self, reader)
        finally:
            reader.close()

    def _reader(self, path: str) -> CheckpointReader:
        files.ensure_dir(self._root, 0o700)
        return CheckpointReader(path, self._limits, scratch=self._root)

    async def unpack(self, container_id: ContainerId, reader: CheckpointReader, spec: bytes) -> None:
        """As ports.checkpoints.CheckpointArchive.unpack."""

        def unpack(stopped: Stopped) -> None:
            self._make(container_id)
            files.write_atomic(f"{self._folder(container_id)}/{_SPEC}", spec, mode=0o600)
            reader.unpack(self.place(container_id).images, stopped)

        await self._work(unpack)


class OpenCheckpoint:
    """Implements ports.checkpoints.CheckpointArchive."""

    def __init__(self, directory: CheckpointDirectory, reader: CheckpointReader) -> None:
        self._directory = directory
        self._reader = reader
        self.about: Checkpointed = reader.about
        self.fill = reader.fill

    async def unpack(self, container_id: ContainerId, spec: bytes) -> None:
        await self._directory.unpack(container_id, self._reader, spec)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)


def _part(location: str, container_id: ContainerId) -> str:
    """Told by the container, so that it is found after a crash."""
    folder, name = posixpath.split(location)
    return f"{folder}/.{name[:100]}.{container_id[:16]}.part"


def _check_location(location: str) -> None:
    if location.endswith("/") or posixpath.basename(location) in {"", ".", ".."}:
        raise InvalidInput(f"location: {location} names no file")
    folder = posixpath.dirname(location)
    try:
        if not Path(folder).is_dir():
            raise InvalidInput(f"location: {folder} is no directory")
        os.lstat(location)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in {errno.ENAMETOOLONG, errno.ELOOP}:
            raise InvalidInput(f"location: {location}: {(error.strerror or '').lower()}") from error
        raise translate("location:", error) from error
    raise AlreadyExists(f"location: {location} exists")
