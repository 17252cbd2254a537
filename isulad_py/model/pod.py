"""Pod sandboxes: what was asked for, and the facts from which the state is derived."""

from __future__ import annotations

import enum

from msgspec import Struct, field

from isulad_py.model.container import Processes
from isulad_py.model.ids import PodId
from isulad_py.model.network import Attachment, Dns, NetworkResult, PortMapping
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode, PodSecurity, UserNamespace


class PodMetadata(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    uid: str = ""
    namespace: str = ""
    attempt: int = 0


class PodConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI PodSandboxConfig. Labels and annotations are returned exactly as given."""

    metadata: PodMetadata
    hostname: str = ""
    log_directory: str = ""
    dns: Dns | None = None
    port_mappings: tuple[PortMapping, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    cgroup_parent: str = ""
    security: PodSecurity = PodSecurity()
    sysctls: dict[str, str] = field(default_factory=dict)
    overhead: Resources | None = None
    resources: Resources | None = None

    @property
    def host_network(self) -> bool:
        return self.security.namespaces.network is NamespaceMode.NODE


class PodState(enum.Enum):
    """`CREATING` and `REMOVING` are ours; CRI sees READY and NOTREADY only."""

    CREATING = "creating"
    READY = "ready"
    NOTREADY = "notready"
    REMOVING = "removing"


class PodEnvironment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Host paths of what containers of the pod share; empty where the host's own is used."""

    netns_path: str = ""
    ipcns_path: str = ""
    utsns_path: str = ""
    pidns_path: str = ""
    """Of the pause container; only where the pod shares a PID namespace."""
    userns_path: str = ""
    shm_path: str = ""
    hostname_path: str = ""
    hosts_path: str = ""
    resolv_path: str = ""
    hostname: str = ""


class PodUsers(Struct, frozen=True, kw_only=True):
    """A user namespace of the pod's own."""

    ids: UserNamespace
    path: str
    """Where it is pinned."""


class PodRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about one pod, in nanoseconds since 1970 where they are times; zero is "not yet"."""

    id: PodId
    config: PodConfig
    runtime_handler: str = ""
    """As requested; empty means the default runtime."""
    created_at: int = 0
    ready_at: int = 0
    stopping_at: int = 0
    """StopPodSandbox began, or the pod failed: not ready from here on."""
    stopped_at: int = 0
    """All that the pod held outside its record is released (processes, network, namespaces)."""
    removing_at: int = 0
    boot_id: str = ""
    cgroup_path: str = ""
    """The pod's cgroup, relative to the hierarchy's root."""
    environment: PodEnvironment = PodEnvironment()
    attachment: Attachment | None = None
    """Set before ADD; its presence means that DEL is owed."""
    network: NetworkResult | None = None
    pause: Processes | None = None
    """Of the pause container, where the pod has one; its container id is the pod's own."""
    resources: Resources | None = None
    """As last set by RunPodSandbox or UpdatePodSandboxResources; so is the overhead."""
    overhead: Resources | None = None

    @property
    def name(self) -> str:
        """The reserved name: no two live pods may share it."""
        meta = self.config.metadata
        return f"{meta.name}_{meta.namespace}_{meta.uid}_{meta.attempt}"

    @property
    def users(self) -> PodUsers | None:
        """None where the pod has the host's."""
        ids = self.config.security.namespaces.own_users
        return None if ids is None else PodUsers(ids=ids, path=self.environment.userns_path)

    @property
    def state(self) -> PodState:
        if self.removing_at:
            return PodState.REMOVING
        if self.stopping_at or self.stopped_at:
            return PodState.NOTREADY
        return PodState.READY if self.ready_at else PodState.CREATING
