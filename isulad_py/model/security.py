"""Security context of pods and containers. `None` means "not given": uid 0 is not "no uid" (CRI, Int64Value)."""

from __future__ import annotations

import enum

from msgspec import Struct


class NamespaceMode(enum.IntEnum):
    """CRI NamespaceMode; the zero value carries meaning."""

    POD = 0
    CONTAINER = 1
    NODE = 2
    TARGET = 3


class ProfileKind(enum.IntEnum):
    """CRI SecurityProfile.ProfileType."""

    RUNTIME_DEFAULT = 0
    UNCONFINED = 1
    LOCALHOST = 2


class GroupsPolicy(enum.IntEnum):
    """CRI SupplementalGroupsPolicy."""

    MERGE = 0
    STRICT = 1


class IdMapping(Struct, frozen=True, kw_only=True):
    host_id: int
    container_id: int
    length: int


class UserNamespace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    mode: NamespaceMode
    uids: tuple[IdMapping, ...] = ()
    gids: tuple[IdMapping, ...] = ()

    def host_uid(self, uid: int) -> int | None:
        """The host's number for a user inside; None for one that is not mapped."""
        return _host_id(self.uids, uid)

    def host_gid(self, gid: int) -> int | None:
        return _host_id(self.gids, gid)

    def owner(self, uid: int, gid: int) -> tuple[int, int]:
        """Who is to own a file on the host that belongs to these inside. What is not mapped stays unowned: -1."""
        host_uid, host_gid = self.host_uid(uid), self.host_gid(gid)
        return -1 if host_uid is None else host_uid, -1 if host_gid is None else host_gid


def _host_id(mappings: tuple[IdMapping, ...], inside: int) -> int | None:
    for each in mappings:
        if each.container_id <= inside < each.container_id + each.length:
            return each.host_id + inside - each.container_id
    return None


class NamespaceOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    network: NamespaceMode = NamespaceMode.POD
    pid: NamespaceMode = NamespaceMode.POD
    ipc: NamespaceMode = NamespaceMode.POD
    target_id: str = ""
    userns: UserNamespace | None = None

    @property
    def own_users(self) -> UserNamespace | None:
        """None where the users are the host's: NODE, or nothing said (CRI, NamespaceOption.userns_options)."""
        return self.userns if self.userns is not None and self.userns.mode is not NamespaceMode.NODE else None


class SecurityProfile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: ProfileKind
    localhost_ref: str = ""


class SELinuxLabel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class PodSecurity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI LinuxSandboxSecurityContext."""

    namespaces: NamespaceOptions = NamespaceOptions()
    selinux: SELinuxLabel | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    groups_policy: GroupsPolicy = GroupsPolicy.MERGE
    privileged: bool = False
    seccomp: SecurityProfile | None = None
    apparmor: SecurityProfile | None = None


class Capabilities(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Names with or without `CAP_`, any case; `ALL` stands for all."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    add_ambient: tuple[str, ...] = ()


class ContainerSecurity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CRI LinuxContainerSecurityContext."""

    capabilities: Capabilities = Capabilities()
    privileged: bool = False
    namespaces: NamespaceOptions = NamespaceOptions()
    selinux: SELinuxLabel | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_username: str = ""
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    groups_policy: GroupsPolicy = GroupsPolicy.MERGE
    no_new_privs: bool = False
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    seccomp: SecurityProfile | None = None
    apparmor: SecurityProfile | None = None
