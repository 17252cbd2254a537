"""Device nodes and the rules that open them (OCI config-linux.md, Devices and Device allowlist)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isulad_py.model.container import Device as CriDevice
from isulad_py.model.devices import HostDevice
from isulad_py.model.errors import InvalidInput
from isulad_py.spec import checks
from isulad_py.spec.schema import Device, DeviceRule

EVERYTHING = "rwm"
NO_PERMISSIONS = "none"
"""A node that cannot be opened (CDI, deviceNodes.permissions)."""


def check(devices: Sequence[CriDevice]) -> None:
    """What the request says, before anybody looks for the nodes."""
    for index, device in enumerate(devices):
        checks.inner_path(device.container_path, f"config.devices[{index}].container_path")
        checks.absolute_path(device.host_path, f"config.devices[{index}].host_path")
        if set(device.permissions) - set(EVERYTHING):
            raise InvalidInput(
                f"config.devices[{index}].permissions: not of the letters r, w and m: {device.permissions!r}"
            )


def nodes(devices: Iterable[HostDevice]) -> tuple[Device, ...]:
    """One a path; the last of several wins."""
    found = {device.path: device for device in devices}
    return tuple(
        Device(
            type=device.type,
            path=device.path,
            major=device.major,
            minor=device.minor,
            file_mode=device.mode,
            uid=device.uid,
            gid=device.gid,
        )
        for device in found.values()
    )


def rules(devices: Iterable[HostDevice], *, privileged: bool) -> tuple[DeviceRule, ...]:
    """Nothing but what is named; runtimes add null, zero, full, random, urandom, tty and ptmx themselves."""
    if privileged:
        return (DeviceRule(allow=True, access=EVERYTHING),)
    opened = {
        (device.type, device.major, device.minor): DeviceRule(
            allow=True,
            type=device.type,
            major=device.major,
            minor=device.minor,
            access=device.permissions or EVERYTHING,
        )
        for device in devices
        if device.permissions != NO_PERMISSIONS
    }
    return (DeviceRule(allow=False, access=EVERYTHING), *opened.values())
