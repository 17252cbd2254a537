"""What the operator declares beside daemon.json for containers to get: CDI devices and OCI hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from isulad_py.model.container import Identity
from isulad_py.model.edits import Edits, WantedDevice
from isulad_py.model.hooks import HookEntry


class Injections(Protocol):
    async def devices(self, wanted: Sequence[WantedDevice], owner: Identity) -> Edits:
        """Of all devices, in order; nodes that name no owner belong to the container's user. InvalidInput naming the
        field of a device that is not declared, declared twice, or of which the host lacks a part; Unsupported for an
        edit that cannot be made, or where CDI is off."""
        ...

    async def hooks(self) -> tuple[HookEntry, ...]:
        """In the order in which they are to run. FailedPrecondition naming the file that is no longer right: a
        container without the operator's hook would be worse than none."""
        ...
