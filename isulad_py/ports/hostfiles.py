"""Host paths that a container's configuration names, and directories inside its root file system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from isulad_py.model.container import Device, Identity, Mount
from isulad_py.model.devices import HostDevice


class HostFiles(Protocol):
    async def resolve_mounts(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        """With symbolic links of host paths followed; one where nothing is, is for `make_sources`. InvalidInput naming
        `config.mounts[i].host_path` for what cannot be followed; FailedPrecondition naming its `propagation` where the
        host's mount tells of none."""
        ...

    async def make_sources(self, mounts: Sequence[Mount]) -> None:
        """Makes a directory wherever the host path of a resolved mount is missing. InvalidInput naming
        `config.mounts[i].host_path` where that cannot be done."""
        ...

    async def resolve_devices(self, devices: Sequence[Device]) -> tuple[HostDevice, ...]:
        """Directories become the devices in them. InvalidInput naming `config.devices[i].host_path`."""
        ...

    async def all_devices(self) -> tuple[HostDevice, ...]:
        """Every device of the host, for privileged containers; not terminals."""
        ...

    async def ensure_directories(self, rootfs: str, paths: Sequence[str], owner: Identity) -> None:
        """Makes what is missing beneath the root, never led out of it by links of the image."""
        ...

    async def read_profile(self, path: str) -> bytes:
        """A localhost seccomp profile. InvalidInput naming `seccomp.localhost_ref` where it cannot be read."""
        ...

    async def within(self, root: str, sub_path: str, index: int) -> str:
        """The path of `sub_path` below `root`, never led out of it. NotFound naming
        `config.mounts[index].image_sub_path` where there is nothing."""
        ...
