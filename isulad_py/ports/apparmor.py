"""The profiles that the kernel's AppArmor has."""

from __future__ import annotations

from typing import Protocol


class AppArmorProfiles(Protocol):
    async def require(self, name: str) -> None:
        """The daemon's own profile is loaded where it is missing (a host may unload all of them at any time).

        Raises InvalidInput naming `localhost_ref` for another one that is not loaded, HostFailure where ours cannot be.
        """
        ...
