"""A checkpoint archive as containerd, CRI-O and this engine write it. Hostile input; synchronous.

config.dump and spec.dump say what was checkpointed, checkpoint/ holds CRIU's images, rootfs-diff.tar and deleted.files
what the container had changed in its root file system. Other members are for people.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from isulad_py.host import inherit
from isulad_py.host.disk_reserve import DiskReserve
from isulad_py.host.failures import translated
from isulad_py.host.layer_tree import LayerTree, TreeFacts
from isulad_py.images.archive import Archive
from isulad_py.images.checkpoint_tar import Stopped
from isulad_py.images.inflate import inflate
from isulad_py.images.tar import TarReader
from isulad_py.images.unpack import UnpackLimits, write_entries
from isulad_py.model.checkpoint import Checkpointed
from isulad_py.model.errors import Aborted, DataLoss, EngineError, InvalidInput, PermissionDenied, ResourceExhausted

CONFIG: Final = "config.dump"
SPEC: Final = "spec.dump"
DIFF: Final = "rootfs-diff.tar"
DELETED: Final = "deleted.files"
IMAGES: Final = "checkpoint"
INVENTORY: Final = f"{IMAGES}/inventory.img"
DESCRIPTORS: Final = f"{IMAGES}/descriptors.json"
_CONFIG_LIMIT: Final = 1024 * 1024
_SPEC_LIMIT: Final = 16 * 1024 * 1024
_KEPT_INODES: Final = 1024
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class _Config(Struct, rename="camel"):
    name: str = ""
    rootfs_image: str = ""
    rootfs_image_ref: str = ""
    rootfs_image_name: str = ""


class _Mount(Struct):
    destination: str
    type: str = ""
    options: list[str] | None = None


class _Namespace(Struct):
    type: str


class _Linux(Struct):
    namespaces: list[_Namespace] | None = None


class _Process(Struct):
    terminal: bool = False


class _Spec(Struct):
    mounts: list[_Mount] | None = None
    linux: _Linux = field(default_factory=_Linux)
    process: _Process = field(default_factory=_Process)


def facts_of_spec(document: bytes) -> tuple[frozenset[str], frozenset[str], bool]:
    """Binds, namespaces and terminal, as `Checkpointed` has them. Raises DataLoss for what is no OCI runtime spec."""
    try:
        spec = msgspec.json.decode(document, type=_Spec)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataLoss(f"{SPEC}: {error}") from error
    binds = {
        posixpath.normpath(mount.destination)
        for mount in spec.mounts or ()
        if mount.type == "bind" or {"bind", "rbind"}.intersection(mount.options or ())
    }
    namespaces = {namespace.type for namespace in spec.linux.namespaces or ()}
    return frozenset(binds), frozenset(namespaces), spec.process.terminal


class CheckpointReader:
    """To be closed. Every error names the archive, and the entry where there is one."""

    def __init__(self, path: str, limits: UnpackLimits, *, scratch: str = "") -> None:
        """`scratch` is for what is compressed as a whole. Errors as ports.checkpoints.CheckpointFiles.open."""
        check_owner(path)
        self._limits = limits
        self._archive = Archive(path, scratch=scratch, limits=limits).open()
        try:
            with self._named():
                self.about = self._about()
                self._images = self._image_names()
        except BaseException:
            self._archive.close()
            raise

    def close(self) -> None:
        """Idempotent."""
        self._archive.close()

    def _named(self) -> _Named:
        return _Named(f"archive {self._archive.path}")

    def _about(self) -> Checkpointed:
        for name in (CONFIG, SPEC, INVENTORY):
            if not self._archive.has(name):
                raise DataLoss(f"it is no checkpoint of a container: it has no {name}")
        config = self._config()
        binds, namespaces, terminal = facts_of_spec(self._archive.read(SPEC, _SPEC_LIMIT))
        return Checkpointed(
            name=config.name,
            image_name=config.rootfs_image_name or config.rootfs_image,
            image_ref=config.rootfs_image_ref,
            binds=binds,
            namespaces=namespaces,
            terminal=terminal,
        )

    def _config(self) -> _Config:
        try:
            config = msgspec.json.decode(self._archive.read(CONFIG, _CONFIG_LIMIT), type=_Config)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataLoss(f"{CONFIG}: {error}") from error
        if not (config.rootfs_image_ref or config.rootfs_image_name or config.rootfs_image):
            raise DataLoss(f"{CONFIG}: it names no image")
        return config

    def _image_names(self) -> list[str]:
        """CRIU keeps all images in one directory."""
        names = [name for name in self._archive.names() if name.startswith(f"{IMAGES}/")]
        for name in names:
            if name.count("/") != 1:
                raise DataLoss(f"{name[:200]}: CRIU has no directories")
        self._check_descriptors()
        return names

    def _check_descriptors(self) -> None:
        """The runtime takes for granted that there are three (runc, descriptors.json)."""
        try:
            found = msgspec.json.decode(self._archive.read(DESCRIPTORS, _CONFIG_LIMIT), type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataLoss(f"{DESCRIPTORS}: {error}") from error
        if len(found) != 3:
            raise DataLoss(f"{DESCRIPTORS}: {len(found)} descriptors, where 3 are expected")

    def fill(self, upper: str, lower: Sequence[str]) -> None:
        """As ports.checkpoints.CheckpointArchive.fill."""
        with self._named(), translated("restore the changes of the root file system:"):
            reserve = DiskReserve(upper, keep_bytes=self._limits.reserve_bytes, keep_inodes=_KEPT_INODES)
            tree = LayerTree(upper, grow=reserve.take, max_inodes=self._limits.entries)
            try:
                facts = self._write_changes(tree)
            finally:
                tree.close()
            inherit.attributes(upper, lower, facts.implied)

    def _write_changes(self, tree: LayerTree) -> TreeFacts:
        for name in self._deleted():
            tree.whiteout(os.fsencode(name))
        if not self._archive.has(DIFF):
            return tree.finish()
        plain = inflate(self._archive.chunks(DIFF))
        return write_entries(TarReader(self._bounded(plain)), tree, self._limits)

    def _deleted(self) -> list[str]:
        if not self._archive.has(DELETED):
            return []
        try:
            found = msgspec.json.decode(self._archive.read(DELETED, _SPEC_LIMIT), type=list[str] | None) or []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataLoss(f"{DELETED}: {error}") from error
        if len(found) > self._limits.entries:
            raise ResourceExhausted(f"{DELETED}: more than {self._limits.entries} entries")
        return found

    def _bounded(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        given, taken = 0, self._archive.size(DIFF)
        for piece in pieces:
            given += len(piece)
            self._limits.check_expansion(given, taken, DIFF)
            yield piece

    def unpack(self, directory: str, stopped: Stopped) -> None:
        """CRIU's images into the empty directory."""
        with self._named():
            needed = sum(self._archive.size(name) for name in self._images)
            with translated("unpack:"):
                state = os.statvfs(directory)
            if needed > state.f_bavail * state.f_frsize - self._limits.reserve_bytes:
                raise ResourceExhausted(f"{needed} bytes of memory do not fit on the disk")
            for name in self._images:
                if stopped():
                    raise Aborted("the restore was given up")
                self._unpack(name, f"{directory}/{posixpath.basename(name)}")

    def _unpack(self, name: str, path: str) -> None:
        with translated(f"{name[:200]}: write"):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                for piece in self._archive.chunks(name):
                    view = memoryview(piece)
                    while view:
                        view = view[os.write(fd, view) :]
            finally:
                os.close(fd)


class _Named:
    """Puts what is being read before each error that does not say so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EngineError) and not str(error).startswith(self._name):
            raise type(error)(f"{self._name}: {error}") from error


def check_owner(path: str) -> None:
    """What is restored runs with the privileges that its images name: whoever writes an archive is root here. Raises
    InvalidInput or PermissionDenied."""
    try:
        state = Path(path).stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"archive {path}: {reason.lower()}") from error
    if not stat.S_ISREG(state.st_mode):
        raise InvalidInput(f"archive {path}: not a file")
    if state.st_uid != os.geteuid() or state.st_mode & _OTHERS:
        raise PermissionDenied(f"archive {path}: must belong to root and be writable by nobody else")
