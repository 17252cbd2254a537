"""Capabilities of a container: a default set, added to and dropped from, never more than this host can give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.security import Capabilities
from isulad_py.spec.schema import CapabilitySets

_KNOWN: Final = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
_DEFAULT: Final = """
CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL
AUDIT_WRITE
"""

KNOWN: Final = tuple("CAP_" + name for name in _KNOWN.split())
"""By bit number (capabilities(7))."""

DEFAULT: Final = tuple("CAP_" + name for name in _DEFAULT.split())
"""What docker, containerd and iSulad give."""

FIELD: Final = "config.linux.security_context.capabilities"
ALL: Final = "ALL"


def capability_sets(asked: Capabilities, *, privileged: bool, host: HostFacts) -> CapabilitySets:
    """`ALL` is applied before single names, in both lists, so that "drop ALL, add X" is X and "add ALL, drop X" is all
    but X. Raises InvalidInput for a name that is no capability, Unsupported for one that this process does not hold."""
    add = _names(asked.add, "add_capabilities")
    drop = _names(asked.drop, "drop_capabilities")
    ambient = _names(asked.add_ambient, "add_ambient_capabilities")
    granted = set(KNOWN if privileged or ALL in add else DEFAULT)
    if ALL in drop and not privileged:
        granted.clear()
    granted &= set(host.capabilities)
    if not privileged:
        granted |= _held(add, "add_capabilities", host)
        granted -= drop
    raised = set(KNOWN) & set(host.capabilities) if ALL in ambient else set()
    raised |= _held(ambient, "add_ambient_capabilities", host)
    bounding = _in_order(granted | raised)
    # The kernel raises an ambient capability only where it is permitted and inheritable too (capabilities(7)).
    ambient_set = _in_order(raised)
    return CapabilitySets(
        bounding=bounding, effective=bounding, permitted=bounding, inheritable=ambient_set, ambient=ambient_set
    )


def _names(values: Iterable[str], field: str) -> set[str]:
    names: set[str] = set()
    for value in values:
        upper = value.upper()
        if upper == ALL:
            names.add(ALL)
            continue
        name = upper if upper.startswith("CAP_") else "CAP_" + upper
        if name not in KNOWN:
            raise InvalidInput(f"{FIELD}.{field}: no such capability: {value!r}")
        names.add(name)
    return names


def _held(names: set[str], field: str, host: HostFacts) -> set[str]:
    single = names - {ALL}
    if missing := single - set(host.capabilities):
        raise Unsupported(f"{FIELD}.{field}: not held by this daemon itself: {', '.join(sorted(missing))}")
    return single


def _in_order(names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in KNOWN if name in names)
