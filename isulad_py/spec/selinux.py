"""SELinux labels of a container. On a host without SELinux a request for one means nothing, as with every engine: pods
with labels are meant to run on either kind of node."""

from __future__ import annotations

from typing import Final

from isulad_py.model.errors import InvalidInput
from isulad_py.model.facts import HostFacts
from isulad_py.model.security import SELinuxLabel

FIELD: Final = "config.linux.security_context.selinux_options"
USER: Final = "system_u"
ROLE: Final = "system_r"
PROCESS_TYPE: Final = "container_t"
FILE_ROLE: Final = "object_r"
FILE_TYPE: Final = "container_file_t"


def labels(asked: SELinuxLabel | None, host: HostFacts, *, level: str, privileged: bool = False) -> tuple[str, str]:
    """(process, mount) labels; `level` is the pod's own (MCS), where the request names none. Empty without SELinux and
    for a privileged container that asks for nothing."""
    if not host.selinux or (asked is None and privileged):
        return "", ""
    label = asked or SELinuxLabel()
    for name in ("user", "role", "type"):
        if ":" in (value := getattr(label, name)) or any(character.isspace() for character in value):
            raise InvalidInput(f"{FIELD}.{name}: {value!r} is no part of a label")
    chosen = label.level or level
    process = (label.user or USER, label.role or ROLE, label.type or PROCESS_TYPE, chosen)
    mount = (label.user or USER, FILE_ROLE, FILE_TYPE, chosen)
    return ":".join(filter(None, process)), ":".join(filter(None, mount))
