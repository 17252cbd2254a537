"""The OCI runtime specification (config.md, config-linux.md) as far as we write it.

`omit_defaults` leaves out what the specification makes optional; what it requires has no default here.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType, field

from isulad_py.model.hooks import Hook


class Node(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of all objects of the document."""


class User(Node, frozen=True, kw_only=True):
    uid: int
    gid: int
    umask: int | None = None
    additional_gids: tuple[int, ...] = ()


class CapabilitySets(Node, frozen=True, kw_only=True):
    bounding: tuple[str, ...] = ()
    effective: tuple[str, ...] = ()
    inheritable: tuple[str, ...] = ()
    permitted: tuple[str, ...] = ()
    ambient: tuple[str, ...] = ()


class Rlimit(Node, frozen=True, kw_only=True):
    type: str
    """With its prefix: RLIMIT_NOFILE."""
    hard: int
    soft: int


class Process(Node, frozen=True, kw_only=True):
    user: User
    cwd: str
    args: tuple[str, ...]
    terminal: bool = False
    env: tuple[str, ...] = ()
    capabilities: CapabilitySets | None = None
    rlimits: tuple[Rlimit, ...] = ()
    no_new_privileges: bool = False
    apparmor_profile: str = ""
    selinux_label: str = ""
    oom_score_adj: int | None = None


class Root(Node, frozen=True, kw_only=True):
    path: str
    readonly: bool = False


class LinuxIdMapping(Node, frozen=True, kw_only=True):
    container_id: int = field(name="containerID")
    host_id: int = field(name="hostID")
    size: int


class Mount(Node, frozen=True, kw_only=True):
    destination: str
    type: str = ""
    source: str = ""
    options: tuple[str, ...] = ()
    uid_mappings: tuple[LinuxIdMapping, ...] = ()
    gid_mappings: tuple[LinuxIdMapping, ...] = ()


class Namespace(Node, frozen=True, kw_only=True):
    type: str
    path: str = ""


class Device(Node, frozen=True, kw_only=True):
    type: str
    path: str
    major: int
    minor: int
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class DeviceRule(Node, frozen=True, kw_only=True):
    allow: bool
    type: str = ""
    major: int | None = None
    minor: int | None = None
    access: str = ""


class Memory(Node, frozen=True, kw_only=True):
    limit: int | None = None
    swap: int | None = None


class Cpu(Node, frozen=True, kw_only=True):
    shares: int | None = None
    quota: int | None = None
    period: int | None = None
    cpus: str = ""
    mems: str = ""


class Pids(Node, frozen=True, kw_only=True):
    limit: int


class HugepageLimit(Node, frozen=True, kw_only=True):
    page_size: str
    limit: int


class LinuxResources(Node, frozen=True, kw_only=True):
    devices: tuple[DeviceRule, ...] = ()
    memory: Memory | None = None
    cpu: Cpu | None = None
    pids: Pids | None = None
    hugepage_limits: tuple[HugepageLimit, ...] = ()
    unified: dict[str, str] = {}


class Linux(Node, frozen=True, kw_only=True):
    namespaces: tuple[Namespace, ...] = ()
    uid_mappings: tuple[LinuxIdMapping, ...] = ()
    gid_mappings: tuple[LinuxIdMapping, ...] = ()
    devices: tuple[Device, ...] = ()
    cgroups_path: str = ""
    resources: LinuxResources | None = None
    rootfs_propagation: str = ""
    seccomp: Raw | UnsetType = UNSET
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    mount_label: str = ""


class Spec(Node, frozen=True, kw_only=True):
    oci_version: str
    process: Process
    root: Root
    linux: Linux
    mounts: tuple[Mount, ...] = ()
    hooks: dict[str, tuple[Hook, ...]] = {}
    """By stage."""
    annotations: dict[str, str] = {}
