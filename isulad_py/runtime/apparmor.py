"""AppArmor profiles: which the kernel has, and the loading of ours (ports.apparmor)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

import structlog

from isulad_py.host import blocking, process
from isulad_py.host.failures import translate
from isulad_py.model.errors import InvalidInput
from isulad_py.spec import apparmor_default
from isulad_py.spec.apparmor import FIELD

log = structlog.get_logger(__name__)

LISTING: Final = "/sys/kernel/security/apparmor/profiles"
PARSER: Final = "apparmor_parser"
LOAD_SECONDS: Final = 30.0


class KernelProfiles:
    """Implements ports.apparmor.AppArmorProfiles."""

    def __init__(self, *, listing: str = LISTING, parser: str = PARSER) -> None:
        self._listing = Path(listing)
        self._parser = parser
        self._loading = asyncio.Lock()

    def default_name(self) -> str:
        """What `require` can load; empty where there is no parser."""
        return apparmor_default.NAME if shutil.which(self._parser, path=process.PATH) else ""

    async def require(self, name: str) -> None:
        if await blocking.run(self._is_loaded, name):
            return
        if name != apparmor_default.NAME:
            raise InvalidInput(f"{FIELD}.localhost_ref: profile {name!r} is not loaded on this host")
        async with self._loading:
            if not await blocking.run(self._is_loaded, name):
                await self._load()

    async def _load(self) -> None:
        document = apparmor_default.PROFILE.encode()
        argv = (self._parser, "--replace", "--skip-cache")
        command = process.Command(argv=argv, stdin=document, timeout_seconds=LOAD_SECONDS)
        (await process.run(command)).check("load the default AppArmor profile")
        log.info("AppArmor profile loaded", profile=apparmor_default.NAME)

    def _is_loaded(self, name: str) -> bool:
        """A line has the profile's name and, in brackets, its mode."""
        try:
            lines = self._listing.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except OSError as error:
            raise translate("list AppArmor profiles", error) from error
        return any(line.rpartition(" (")[0] == name for line in lines)
