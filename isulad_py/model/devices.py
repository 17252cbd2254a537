"""Device nodes, as the kernel knows them."""

from __future__ import annotations

from msgspec import Struct


class HostDevice(Struct, frozen=True, kw_only=True):
    """A device of this host and where a container sees it."""

    path: str
    """In the container."""
    type: str
    """`c` or `b` (OCI config-linux.md, Devices)."""
    major: int
    minor: int
    mode: int = 0o666
    """Permission bits."""
    uid: int = 0
    gid: int = 0
    permissions: str = "rwm"
    """What the device cgroup allows; `none` is nothing."""
