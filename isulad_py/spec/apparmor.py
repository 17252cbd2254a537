"""Which AppArmor profile a container's processes run under. That it is loaded is for the caller to see to."""

from __future__ import annotations

from typing import Final

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.security import ProfileKind, SecurityProfile

FIELD: Final = "config.linux.security_context.apparmor"
LOCALHOST: Final = "localhost/"


def profile_name(asked: SecurityProfile | None, *, privileged: bool, host: HostFacts, default: str) -> str:
    """Empty for none; `default` is empty where this host cannot load ours. Raises Unsupported where a profile is asked
    for and there is none: to go without would be less protection than was asked for."""
    kind = asked.kind if asked is not None else None
    if kind is ProfileKind.UNCONFINED:
        return ""
    if not host.apparmor:
        if kind is None or privileged:
            return ""
        raise Unsupported(f"{FIELD}: this kernel has no AppArmor")
    if asked is not None and kind is ProfileKind.LOCALHOST:
        name = asked.localhost_ref.removeprefix(LOCALHOST)
        if not name:
            raise InvalidInput(f"{FIELD}.localhost_ref: must name a profile")
        return name
    if kind is ProfileKind.RUNTIME_DEFAULT and not (privileged or default):
        raise Unsupported(f"{FIELD}: the default profile cannot be loaded: apparmor_parser is not installed")
    return "" if privileged else default
