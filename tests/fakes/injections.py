"""Devices and hooks that a test declares."""

from __future__ import annotations

from collections.abc import Sequence

from isulad_py.model.container import Identity
from isulad_py.model.edits import Edits, WantedDevice
from isulad_py.model.errors import InvalidInput
from isulad_py.model.hooks import HookEntry


class FakeInjections:
    """Implements ports.injections.Injections, for one device at a time."""

    def __init__(self) -> None:
        self.declared: dict[str, Edits] = {}
        self.entries: tuple[HookEntry, ...] = ()

    async def devices(self, wanted: Sequence[WantedDevice], owner: Identity) -> Edits:
        for device in wanted:
            if device.name not in self.declared:
                raise InvalidInput(f"{device.field}: no CDI device {device.name}")
        return self.declared[wanted[0].name] if wanted else Edits()

    async def hooks(self) -> tuple[HookEntry, ...]:
        return self.entries
