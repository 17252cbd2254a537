"""Profiles that are loaded because a test says so."""

from __future__ import annotations

from isulad_py.model.errors import InvalidInput
from isulad_py.spec import apparmor_default


class FakeProfiles:
    """Implements ports.apparmor.AppArmorProfiles."""

    def __init__(self, loaded: set[str] | None = None) -> None:
        self.loaded = set(loaded or ())

    def default_name(self) -> str:
        return apparmor_default.NAME

    async def require(self, name: str) -> None:
        if name not in self.loaded and name != apparmor_default.NAME:
            raise InvalidInput(f"config.linux.security_context.apparmor.localhost_ref: profile {name!r} is not loaded")
        self.loaded.add(name)
