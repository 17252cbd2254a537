"""A user, once looked up in the image."""

from __future__ import annotations

from msgspec import Struct

from isulad_py.model.container import Identity


class ResolvedUser(Struct, frozen=True, kw_only=True, omit_defaults=True):
    identity: Identity = Identity()
    """The primary group is among the supplemental ones, as a login gives it."""
    username: str = ""
    """Empty for a uid without a name."""
    home: str = ""
    """From etc/passwd; empty where it names none."""
