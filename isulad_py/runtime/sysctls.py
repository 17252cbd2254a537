"""Which sysctls a pod may set: those of namespaces that it owns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isulad_py.host.namespaces import sysctl_path
from isulad_py.model.errors import InvalidInput

_ROOT: Final = "/proc/sys/"
_IPC: Final = frozenset(
    {
        "kernel/msgmax",
        "kernel/msgmnb",
        "kernel/msgmni",
        "kernel/msg_next_id",
        "kernel/sem",
        "kernel/sem_next_id",
        "kernel/shmall",
        "kernel/shmmax",
        "kernel/shmmni",
        "kernel/shm_next_id",
        "kernel/shm_rmid_forced",
    }
)
"""ipc_namespaces(7)."""
_UTS: Final = frozenset({"kernel/domainname"})
_INTERFACES: Final = ("net/ipv4/conf/", "net/ipv6/conf/", "net/ipv4/neigh/", "net/ipv6/neigh/", "net/mpls/conf/")
_ALWAYS_THERE: Final = frozenset({"all", "default", "lo"})

PORTS: Final = {"net.ipv4.ip_unprivileged_port_start": "0"}
"""Any port for any user: there is nobody in a pod's network namespace whom a low port would deceive."""
PING: Final = {"net.ipv4.ping_group_range": "0 2147483647"}
"""Echo requests for any group, without CAP_NET_RAW (icmp(7)); not in a user namespace, which may lack the last one."""


def check(sysctls: Mapping[str, str], *, network: bool, ipc: bool) -> None:
    """Raises InvalidInput naming the first one that belongs to no namespace of the pod: set, it would change the host.
    `network` tells of the UTS namespace too. Nor can one have two values, by two spellings of its name."""
    values: dict[str, str] = {}
    for name, value in sysctls.items():
        path = sysctl_path(name).removeprefix(_ROOT)
        if values.setdefault(path, value) != value:
            raise InvalidInput(f"config.linux.sysctls: {name} has another value by another spelling")
        if path.startswith("net/"):
            owned, kind = network, "network"
        elif path in _IPC or path.startswith("fs/mqueue/"):
            owned, kind = ipc, "IPC"
        elif path in _UTS:
            owned, kind = network, "UTS"
        else:
            raise InvalidInput(
                f"config.linux.sysctls: {name} belongs to no namespace, setting it would change the host"
            )
        if not owned:
            raise InvalidInput(
                f"config.linux.sysctls: {name} belongs to the {kind} namespace, which is the host's here"
            )
        if "\0" in value:
            raise InvalidInput(f"config.linux.sysctls: the value of {name} has a NUL in it")


def names_interface(name: str) -> bool:
    """Whether it exists only once the network plugins have made their interfaces."""
    path = sysctl_path(name).removeprefix(_ROOT)
    for prefix in _INTERFACES:
        if path.startswith(prefix):
            return path.removeprefix(prefix).partition("/")[0] not in _ALWAYS_THERE
    return False


def with_defaults(asked: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """What is asked for, and those defaults of which nothing is asked, however it is spelt."""
    named = {sysctl_path(name) for name in asked}
    return {name: value for name, value in defaults.items() if sysctl_path(name) not in named} | dict(asked)
