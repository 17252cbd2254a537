"""Host paths that exist because a test says so."""

from __future__ import annotations

from collections.abc import Sequence

from isulad_py.model.container import Device, Identity, Mount
from isulad_py.model.devices import HostDevice
from isulad_py.model.errors import InvalidInput
from tests.fakes.faults import Faults


class FakeHostFiles:
    """Implements ports.hostfiles.HostFiles. Faults: resolve_mounts, make_sources, ensure_directories."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.paths = {"/srv", "/dev/null"}
        self.directories: list[tuple[str, str]] = []
        self.profiles: dict[str, bytes] = {}

    async def resolve_mounts(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        await self.faults.at("resolve_mounts")
        for index, mount in enumerate(mounts):
            if mount.image is None and mount.host_path not in self.paths:
                raise InvalidInput(f"config.mounts[{index}].host_path: {mount.host_path} cannot be made")
        return tuple(mounts)

    async def make_sources(self, mounts: Sequence[Mount]) -> None:
        await self.faults.at("make_sources")

    async def resolve_devices(self, devices: Sequence[Device]) -> tuple[HostDevice, ...]:
        return tuple(HostDevice(path=device.container_path, type="c", major=1, minor=3) for device in devices)

    async def all_devices(self) -> tuple[HostDevice, ...]:
        return (HostDevice(path="/dev/null", type="c", major=1, minor=3),)

    async def ensure_directories(self, rootfs: str, paths: Sequence[str], owner: Identity) -> None:
        await self.faults.at("ensure_directories")
        self.directories += [(rootfs, path) for path in paths]

    async def read_profile(self, path: str) -> bytes:
        try:
            return self.profiles[path]
        except KeyError:
            raise InvalidInput(
                f"config.linux.security_context.seccomp.localhost_ref: read {path}: no such file"
            ) from None

    async def within(self, root: str, sub_path: str, index: int) -> str:
        return f"{root}/{sub_path}" if sub_path else root
