"""Host paths that a container's configuration names (ports.hostfiles)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from isulad_py.host import blocking, confined, files, mounts
from isulad_py.model.container import Device, Identity, Mount, Propagation
from isulad_py.model.devices import HostDevice
from isulad_py.model.errors import EngineError, FailedPrecondition, InvalidInput, NotFound

log = structlog.get_logger(__name__)

PROFILE_LIMIT_BYTES: Final = 4 * 1024 * 1024
MOST_DEVICES: Final = 10_000
MOST_ENTRIES: Final = 20_000
"""Of a directory of devices, with all below it: `/` is no such directory, and takes minutes to walk."""
NOT_PASSED_ON: Final = frozenset({"pts", "shm", "fd", "mqueue", "console", ".lxc", ".lxd-mounts", ".udev"})
"""Entries of /dev that every container has of its own."""


class HostPaths:
    """Implements ports.hostfiles.HostFiles."""

    async def resolve_mounts(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        if not mounts:
            return ()
        return await blocking.run_apart(lambda: tuple(_resolve_mount(i, mount) for i, mount in enumerate(mounts)))

    async def make_sources(self, mounts: Sequence[Mount]) -> None:
        if mounts:
            await blocking.run_apart(_make_missing, tuple(mounts))

    async def resolve_devices(self, devices: Sequence[Device]) -> tuple[HostDevice, ...]:
        if not devices:
            return ()
        return await blocking.run(
            lambda: tuple(found for i, device in enumerate(devices) for found in _resolve_device(i, device))
        )

    async def all_devices(self) -> tuple[HostDevice, ...]:
        return await blocking.run(lambda: tuple(_walk(Path("/dev"), "/dev", "rwm", skip=NOT_PASSED_ON)))

    async def ensure_directories(self, rootfs: str, paths: Sequence[str], owner: Identity) -> None:
        if paths:
            await blocking.run(_ensure_directories, rootfs, tuple(paths), owner)

    async def read_profile(self, path: str) -> bytes:
        try:
            return await blocking.run(files.read_limited, path, PROFILE_LIMIT_BYTES)
        except EngineError as error:
            raise InvalidInput(f"config.linux.security_context.seccomp.localhost_ref: {error}") from error

    async def within(self, root: str, sub_path: str, index: int) -> str:
        if not sub_path:
            return root
        return await blocking.run(_within, root, sub_path, index)


def _within(root: str, sub_path: str, index: int) -> str:
    field = f"config.mounts[{index}].image_sub_path"
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        raise InvalidInput(f"{field}: {sub_path} must be a path inside the image")
    real_root = os.path.realpath(root)
    real = os.path.realpath(f"{root}/{sub_path}")
    if real != real_root and not real.startswith(f"{real_root}/"):
        raise InvalidInput(f"{field}: {sub_path} leads out of the image")
    if not Path(real).exists():
        raise NotFound(f"{field}: {sub_path} is not in the image")
    return real


def _ensure_directories(rootfs: str, paths: tuple[str, ...], owner: Identity) -> None:
    for path in paths:
        try:
            confined.mkdir_in_root(rootfs, path, uid=owner.uid, gid=owner.gid)
        except FailedPrecondition as error:
            words = error.message.replace(f" below {rootfs}", "")
            raise InvalidInput(f"config.working_dir, or a volume of the image: {words}") from error


def _resolve_mount(index: int, mount: Mount) -> Mount:
    if mount.image is not None:
        return mount
    field = f"config.mounts[{index}].host_path"
    try:
        real = _real_or_to_be_made(mount.host_path)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{field}: {mount.host_path} cannot be resolved: {error}") from error
    _check_propagation(mount.propagation, _existing(real), f"config.mounts[{index}].propagation")
    return msgspec.structs.replace(mount, host_path=real)


def _check_propagation(wanted: Propagation, path: str, field: str) -> None:
    """As containerd does: else the container would never be told of what is mounted later, and nobody would know."""
    if wanted is Propagation.PRIVATE:
        return
    peers = mounts.peers(path)
    if "shared" not in peers and (wanted is Propagation.BIDIRECTIONAL or "master" not in peers):
        raise FailedPrecondition(f"{field}: {wanted.name}, but {path} is on a private mount of this host")


def _real_or_to_be_made(path: str) -> str:
    """Without links. What is missing becomes a directory later, as with containerd and CRI-O, where CRI would have an
    error: hostPath volumes that say no type count on it. A link that leads nowhere is an error all the same."""
    try:
        return os.path.realpath(path, strict=True)
    except FileNotFoundError:
        if not Path(_existing(os.path.normpath(path))).exists():
            raise
        return os.path.realpath(path)


def _existing(path: str) -> str:
    """The path, or the nearest above it that is there."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120 - a text, as all around it
    return path


def _make_missing(wanted: tuple[Mount, ...]) -> None:
    for index, mount in enumerate(wanted):
        if mount.image is not None or os.path.lexists(mount.host_path):
            continue
        log.info("host path of a mount made", path=mount.host_path)
        try:
            files.ensure_dir(mount.host_path, 0o755)
        except EngineError as error:
            field = f"config.mounts[{index}].host_path"
            raise InvalidInput(f"{field}: {mount.host_path} cannot be made: {error}") from error


def _resolve_device(index: int, device: Device) -> Iterator[HostDevice]:
    field = f"config.devices[{index}].host_path"
    permissions = device.permissions or "rwm"
    if not set(permissions) <= set("rwm"):
        raise InvalidInput(f"config.devices[{index}].permissions: {permissions} has letters other than r, w and m")
    container_path = device.container_path or device.host_path
    try:
        real = Path(os.path.realpath(device.host_path, strict=True))
        found = _device(real, container_path, permissions)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{field}: {device.host_path}: {error}") from error
    if found is not None:
        yield found
        return
    if not real.is_dir():
        raise InvalidInput(f"{field}: {device.host_path} is neither a device nor a directory")
    yield from _walk(real, container_path, permissions, field=field)


def _device(path: Path, container_path: str, permissions: str) -> HostDevice | None:
    """None for what is not a device node."""
    status = path.lstat()
    if stat.S_ISCHR(status.st_mode):
        kind = "c"
    elif stat.S_ISBLK(status.st_mode):
        kind = "b"
    else:
        return None
    return HostDevice(
        path=container_path,
        type=kind,
        major=os.major(status.st_rdev),
        minor=os.minor(status.st_rdev),
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        permissions=permissions,
    )


def _walk(
    directory: Path, container_path: str, permissions: str, *, skip: frozenset[str] = frozenset(), field: str = "/dev"
) -> Iterator[HostDevice]:
    """Device nodes below a directory. What vanishes meanwhile is left out; links are not followed."""
    count = entries = 0
    pending = [(directory, container_path)]
    while pending:
        here, shown = pending.pop()
        for name in sorted(_names(here)):
            if here == directory and name in skip:
                continue
            entries += 1
            if entries > MOST_ENTRIES:
                raise InvalidInput(f"{field}: {directory} has more than {MOST_ENTRIES} entries")
            path, inside = here / name, f"{shown.rstrip('/')}/{name}"
            try:
                found = _device(path, inside, permissions)
                is_directory = stat.S_ISDIR(path.lstat().st_mode)
            except OSError:
                continue
            if is_directory:
                pending.append((path, inside))
            elif found is not None and count < MOST_DEVICES:
                count += 1
                yield found


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names, not paths
    except OSError:
        return []
