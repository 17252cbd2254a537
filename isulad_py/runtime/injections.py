"""CDI devices and OCI hooks from the operator's directories (ports.injections)."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import structlog
from msgspec import Struct

from isulad_py.host import blocking
from isulad_py.model import hooks
from isulad_py.model.container import Identity
from isulad_py.model.devices import HostDevice
from isulad_py.model.edits import EditMount, Edits, WantedDevice
from isulad_py.model.errors import EngineError, FailedPrecondition, InvalidInput, Unsupported
from isulad_py.model.hooks import HookEntry, StagedHook
from isulad_py.runtime.file_cache import FileCache, names
from isulad_py.spec import cdi
from isulad_py.spec.devices import EVERYTHING

log = structlog.get_logger(__name__)

T = TypeVar("T")

BINDS: Final = frozenset({"bind", "rbind"})


class Places(Struct, frozen=True, kw_only=True):
    """Where the files lie; of directories, later ones win over earlier ones."""

    cdi_dirs: tuple[str, ...] | None = None
    """None where CDI is off."""
    hook_spec: str = ""
    hook_dirs: tuple[str, ...] = ()


class InjectionFiles:
    """Implements ports.injections.Injections."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._specs = FileCache(_parse_cdi, limit_bytes=cdi.FILE_LIMIT_BYTES)
        self._hook_spec = FileCache(lambda _, data: hooks.parse_hook_spec(data), limit_bytes=hooks.FILE_LIMIT_BYTES)
        self._hook_files = FileCache(lambda _, data: hooks.parse_hook_file(data), limit_bytes=hooks.FILE_LIMIT_BYTES)

    async def devices(self, wanted: Sequence[WantedDevice], owner: Identity) -> Edits:
        if not wanted:
            return Edits()
        if self._places.cdi_dirs is None:
            raise Unsupported(f"{wanted[0].field}: CDI is off in this daemon's configuration (enable-cdi)")
        return await blocking.run(self._devices, self._places.cdi_dirs, tuple(wanted), owner)

    async def hooks(self) -> tuple[HookEntry, ...]:
        if not self._places.hook_spec and not self._places.hook_dirs:
            return ()
        return await blocking.run(self._hooks)

    def _devices(self, directories: tuple[str, ...], wanted: tuple[WantedDevice, ...], owner: Identity) -> Edits:
        chosen = cdi.Catalog(self._catalog(directories)).choose(wanted)
        everything = [one.edits for one in chosen]
        return Edits(
            env=tuple(entry for edits in everything for entry in edits.env),
            devices=tuple(_node(one.device, node, owner) for one in chosen for node in one.edits.device_nodes),
            mounts=tuple(_mount(one.device, mount) for one in chosen for mount in one.edits.mounts),
            hooks=tuple(
                StagedHook(stage=hook.hook_name, hook=hook.hook) for edits in everything for hook in edits.hooks
            ),
            additional_gids=tuple(gid for edits in everything for gid in edits.additional_gids),
        )

    def _catalog(self, directories: tuple[str, ...]) -> list[cdi.SpecFile]:
        broken = []
        priorities: dict[str, int] = {}
        for priority, directory in enumerate(directories):
            try:
                found = names(directory, (".json", ".yaml"))
            except EngineError as error:
                broken.append(cdi.SpecFile(path=directory, priority=priority, error=str(error)))
                continue
            for name in found:
                priorities[str(Path(directory, name))] = priority
        return broken + [
            cdi.SpecFile(path=path, priority=priorities[path], error=str(result))
            if isinstance(result, EngineError)
            else cdi.SpecFile(path=path, priority=priorities[path], document=result)
            for path, result in self._specs.read(priorities).items()
        ]

    def _hooks(self) -> tuple[HookEntry, ...]:
        found: list[HookEntry] = []
        if self._places.hook_spec:
            for path, entries in self._hook_spec.read([self._places.hook_spec]).items():
                found += _valid("hook-spec", path, entries)
        paths: dict[str, str] = {}
        for directory in self._places.hook_dirs:
            for name in names(directory, (".json",)):
                paths[name] = str(Path(directory, name))
        found += [
            _valid("hooks-dir", path, entry)
            for path, entry in self._hook_files.read(paths[name] for name in sorted(paths)).items()
        ]
        return tuple(found)


def _valid(key: str, path: str, result: T | EngineError) -> T:
    if isinstance(result, EngineError):
        raise FailedPrecondition(f"{key}: {path}: {result}") from result
    return result


def _parse_cdi(path: str, data: bytes) -> cdi.Document:
    try:
        return cdi.parse(data, is_yaml=path.endswith(".yaml"))
    except InvalidInput as error:
        log.warning("unusable cdi specification", path=path, error=str(error))
        raise


def _mount(device: WantedDevice, mount: cdi.Mount) -> EditMount:
    """A mount that says nothing of its type is of a host path."""
    kind, options = mount.type, mount.options
    if not kind and not BINDS & set(options):
        kind, options = "bind", ("rbind", *options)
    there = mount.host_path.startswith("/") and os.path.exists(mount.host_path)  # noqa: PTH110 - Path's raises
    if (kind == "bind" or BINDS & set(options)) and not there:
        raise InvalidInput(f"{device.field}: {device.name} mounts {mount.host_path}, which does not exist")
    return EditMount(destination=mount.container_path, source=mount.host_path, type=kind or "bind", options=options)


def _node(device: WantedDevice, node: cdi.DeviceNode, owner: Identity) -> HostDevice:
    """With what the specification leaves out taken from the host's node; one that says type and number needs none."""
    kind: str = "c" if node.type == "u" else node.type
    path = node.host_path or node.path
    complete = bool(kind and node.major)
    major, minor, mode = node.major, node.minor, 0o666
    try:
        status = os.lstat(path)
    except (OSError, ValueError) as error:
        if not complete:
            raise InvalidInput(f"{device.field}: {device.name} needs {path}: {error}") from error
    else:
        mode = stat.S_IMODE(status.st_mode)
        if not complete:
            found = "b" if stat.S_ISBLK(status.st_mode) else "c" if stat.S_ISCHR(status.st_mode) else ""
            if not found or (kind and kind != found):
                raise InvalidInput(f"{device.field}: {device.name} needs {path}, which is no such device")
            kind, major, minor = found, os.major(status.st_rdev), os.minor(status.st_rdev)
    return HostDevice(
        path=node.path,
        type=kind,
        major=major,
        minor=minor,
        mode=node.file_mode if node.file_mode is not None else mode,
        uid=node.uid if node.uid is not None else owner.uid,
        gid=node.gid if node.gid is not None else owner.gid,
        permissions=node.permissions or EVERYTHING,
    )
