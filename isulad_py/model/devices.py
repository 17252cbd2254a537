"""Device nodes, as the kernel knows them."""

from __future__ import annotations

from msgspec import Struct


class HostDevice(Struct, frozen=True, kw_only=True):
    """A device of this host and where a container sees it."""

    container_path: str
    kind: str
    """c for character, b for block devices, as in the OCI runtime spec."""
    major: int
    minor: int
    mode: int
    """Permission bits only."""
    uid: int
    gid: int
    permissions: str = "rwm"
    """What the device cgroup allows."""
