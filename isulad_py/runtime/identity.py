"""Reads an image's user files, safely and within a limit."""

from __future__ import annotations

from typing import Final

from isulad_py.host import blocking, confined
from isulad_py.model.errors import EngineError, FailedPrecondition, NotFound
from isulad_py.model.identity import ResolvedUser
from isulad_py.model.security import ContainerSecurity
from isulad_py.spec import passwd

LIMIT_BYTES: Final = 2 * 1024 * 1024


class RootfsIdentities:
    """Implements ports.identity.Identities."""

    async def resolve(self, rootfs: str, image_user: str, security: ContainerSecurity) -> ResolvedUser:
        passwd.wanted(image_user, security)
        return await blocking.run(_resolve, rootfs, image_user, security)


def _resolve(rootfs: str, image_user: str, security: ContainerSecurity) -> ResolvedUser:
    return passwd.resolve(image_user, security, passwd=_read(rootfs, "etc/passwd"), group=_read(rootfs, "etc/group"))


def _read(rootfs: str, path: str) -> bytes:
    try:
        return confined.read_in_root(rootfs, path, LIMIT_BYTES)
    except NotFound:
        return b""
    except EngineError as error:
        raise FailedPrecondition(f"users of the image: {error}") from error
