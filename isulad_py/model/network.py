"""What the network port takes and gives."""

from __future__ import annotations

import enum

from msgspec import Struct, field


class Protocol(enum.IntEnum):
    """CRI Protocol."""

    TCP = 0
    UDP = 1
    SCTP = 2


class PortMapping(Struct, frozen=True, kw_only=True, omit_defaults=True):
    protocol: Protocol = Protocol.TCP
    container_port: int = 0
    host_port: int = 0
    host_ip: str = ""


class Dns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Attachment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod's place on the network: all that ADD and, later, DEL need. Kept in the pod's record before ADD runs."""

    pod_id: str
    name: str
    namespace: str
    uid: str
    netns_path: str
    cgroup_path: str = ""
    port_mappings: tuple[PortMapping, ...] = ()
    dns: Dns | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    """The pod's annotations: bandwidth and extra CNI arguments come from them."""
    pod_cidr: str = ""
    """The node's pod CIDR when this was prepared: DEL must name the same ranges as ADD."""
    config: str = ""
    """The conflist (JSON) that was used, so that DEL runs with it though the directory has changed since."""


class NetworkResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    ips: tuple[str, ...] = ()
    """The pod's addresses without prefix length; the first is the primary one."""
    interface: str = ""
    raw: str = ""
    """The chain's CNI result (JSON), handed to CHECK and DEL as prevResult."""


class NetworkStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """NetworkReady with its reason (CRI RuntimeCondition)."""

    ready: bool
    reason: str = ""
    message: str = ""
    config_name: str = ""
    config_path: str = ""
    cni_version: str = ""
    plugins: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """Each configuration file that was passed over, with the reason; also while the network is ready."""
