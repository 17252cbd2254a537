"""Whom a container runs as."""

from __future__ import annotations

from typing import Protocol

from isulad_py.model.identity import ResolvedUser
from isulad_py.model.security import ContainerSecurity


class Identities(Protocol):
    async def resolve(self, rootfs: str, image_user: str, security: ContainerSecurity) -> ResolvedUser:
        """The user that the request names, else the image's, else root, looked up in the root file system's own
        etc/passwd and etc/group (CRI, LinuxContainerSecurityContext).

        Raises InvalidInput for what the request names and the image does not have, FailedPrecondition where the
        image itself is at fault: its user is unknown, or those files are unreadable.
        """
        ...
