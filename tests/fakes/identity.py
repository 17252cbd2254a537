"""Users of an image that a test wrote. Passes tests/contract/test_identity.py."""

from __future__ import annotations

from isulad_py.model.identity import ResolvedUser
from isulad_py.model.security import ContainerSecurity
from isulad_py.spec import passwd


class FakeIdentities:
    """Implements ports.identity.Identities: every root file system has these files."""

    def __init__(self, *, passwd: bytes = b"", group: bytes = b"") -> None:
        self.passwd = passwd
        self.group = group

    async def resolve(self, rootfs: str, image_user: str, security: ContainerSecurity) -> ResolvedUser:
        return passwd.resolve(image_user, security, passwd=self.passwd, group=self.group)
