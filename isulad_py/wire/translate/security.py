"""Security contexts of pods and containers, and their namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.security import (
    Capabilities,
    ContainerSecurity,
    GroupsPolicy,
    IdMapping,
    NamespaceMode,
    NamespaceOptions,
    PodSecurity,
    ProfileKind,
    SecurityProfile,
    SELinuxLabel,
    UserNamespace,
)
from isulad_py.wire.translate import checks, presence

MOST_ID_MAPPINGS: Final = 340
"""Of the kernel."""
NO_ID: Final = 2**32 - 1
"""Stands for no user and no group."""
MOST_GROUPS: Final = 65536
"""NGROUPS_MAX."""
MOST_CAPABILITIES: Final = 256


def pod_security(message: cri.LinuxSandboxSecurityContext, field: str) -> PodSecurity:
    user = _number(message.run_as_user, f"{field}.run_as_user")
    group = _number(message.run_as_group, f"{field}.run_as_group")
    if group is not None and user is None:
        raise InvalidInput(f"{field}.run_as_group is given without run_as_user")
    return PodSecurity(
        namespaces=pod_namespaces(message.namespace_options, f"{field}.namespace_options"),
        selinux=_selinux(message.selinux_options, f"{field}.selinux_options"),
        run_as_user=user,
        run_as_group=group,
        readonly_rootfs=message.readonly_rootfs,
        supplemental_groups=_groups(message.supplemental_groups, f"{field}.supplemental_groups"),
        groups_policy=checks.member(
            GroupsPolicy, message.supplemental_groups_policy, f"{field}.supplemental_groups_policy"
        ),
        privileged=message.privileged,
        seccomp=_seccomp(message, field),
        apparmor=_profile(message.apparmor, f"{field}.apparmor"),
    )


def container_security(message: cri.LinuxContainerSecurityContext, field: str) -> ContainerSecurity:
    user = _number(message.run_as_user, f"{field}.run_as_user")
    group = _number(message.run_as_group, f"{field}.run_as_group")
    username = checks.name(message.run_as_username, f"{field}.run_as_username")
    if user is not None and username:
        raise InvalidInput(f"{field}: run_as_user and run_as_username exclude each other")
    if group is not None and user is None and not username:
        raise InvalidInput(f"{field}.run_as_group is given without run_as_user or run_as_username")
    return ContainerSecurity(
        capabilities=_capabilities(message.capabilities, f"{field}.capabilities"),
        privileged=message.privileged,
        namespaces=namespaces(message.namespace_options, f"{field}.namespace_options"),
        selinux=_selinux(message.selinux_options, f"{field}.selinux_options"),
        run_as_user=user,
        run_as_group=group,
        run_as_username=username,
        readonly_rootfs=message.readonly_rootfs,
        supplemental_groups=_groups(message.supplemental_groups, f"{field}.supplemental_groups"),
        groups_policy=checks.member(
            GroupsPolicy, message.supplemental_groups_policy, f"{field}.supplemental_groups_policy"
        ),
        no_new_privs=message.no_new_privs,
        masked_paths=_paths(message.masked_paths, f"{field}.masked_paths"),
        readonly_paths=_paths(message.readonly_paths, f"{field}.readonly_paths"),
        seccomp=_seccomp(message, field),
        apparmor=_profile(message.apparmor, f"{field}.apparmor")
        or _old_profile(message.apparmor_profile, f"{field}.apparmor_profile"),
    )


def pod_namespaces(message: cri.NamespaceOption, field: str) -> NamespaceOptions:
    options = namespaces(message, field)
    if options.pid is NamespaceMode.TARGET:
        raise InvalidInput(f"{field}.pid: TARGET is for containers only")
    return options


def namespaces(message: cri.NamespaceOption, field: str) -> NamespaceOptions:
    """Of a container."""
    options = NamespaceOptions(
        network=checks.member(NamespaceMode, message.network, f"{field}.network"),
        pid=checks.member(NamespaceMode, message.pid, f"{field}.pid"),
        ipc=checks.member(NamespaceMode, message.ipc, f"{field}.ipc"),
        target_id=checks.name(message.target_id, f"{field}.target_id"),
        userns=_user_namespace(message.userns_options, f"{field}.userns_options"),
    )
    if options.pid is NamespaceMode.TARGET and not options.target_id:
        raise InvalidInput(f"{field}.target_id is empty, though pid is TARGET")
    if options.target_id and options.pid is not NamespaceMode.TARGET:
        raise InvalidInput(f"{field}.target_id is given, though pid is {options.pid.name}")
    for kind, mode in (("network", options.network), ("ipc", options.ipc)):
        if mode in {NamespaceMode.TARGET, NamespaceMode.CONTAINER}:
            raise InvalidInput(f"{field}.{kind}: {mode.name} is for pid only: all containers of a pod share this one")
    if options.own_users is not None:
        for kind, mode in (("network", options.network), ("pid", options.pid), ("ipc", options.ipc)):
            if mode is NamespaceMode.NODE:
                raise InvalidInput(f"{field}.{kind}: NODE in a user namespace, which has no rights in the host's")
    return options


def _user_namespace(message: cri.UserNamespace, field: str) -> UserNamespace | None:
    if not presence.given(message):
        return None
    mode = checks.member(NamespaceMode, message.mode, f"{field}.mode")
    if mode not in {NamespaceMode.POD, NamespaceMode.NODE}:
        raise InvalidInput(f"{field}.mode: {mode.name} is neither POD nor NODE")
    users = UserNamespace(
        mode=mode, uids=id_mappings(message.uids, f"{field}.uids"), gids=id_mappings(message.gids, f"{field}.gids")
    )
    for kind, mappings in (("uids", users.uids), ("gids", users.gids)):
        if mode is NamespaceMode.NODE and mappings:
            raise InvalidInput(f"{field}.{kind}: given, though mode is NODE")
        if mode is NamespaceMode.POD and not mappings:
            raise InvalidInput(f"{field}.{kind}: empty, though mode is POD")
    if mode is NamespaceMode.POD and (users.host_uid(0) is None or users.host_gid(0) is None):
        raise InvalidInput(f"{field}: id 0 of the containers is not mapped")
    return users


def id_mappings(messages: Sequence[cri.IdMapping], field: str) -> tuple[IdMapping, ...]:
    """What the kernel takes: user_namespaces(7), uid_map."""
    if len(messages) > MOST_ID_MAPPINGS:
        raise InvalidInput(f"{field}: more than {MOST_ID_MAPPINGS} mappings")
    found: list[IdMapping] = []
    for index, m in enumerate(messages):
        new = IdMapping(host_id=m.host_id, container_id=m.container_id, length=m.length)
        if not new.length:
            raise InvalidInput(f"{field}[{index}].length: 0")
        for name, first in (("host_id", new.host_id), ("container_id", new.container_id)):
            if first + new.length > NO_ID:
                raise InvalidInput(f"{field}[{index}].{name}: {first} and the length go beyond {NO_ID - 1}")
        if any(_overlap(new, old) for old in found):
            raise InvalidInput(f"{field}[{index}]: overlaps one before")
        found.append(new)
    return tuple(found)


def _overlap(one: IdMapping, two: IdMapping) -> bool:
    starts = ((one.host_id, two.host_id), (one.container_id, two.container_id))
    return any(first < second + two.length and second < first + one.length for first, second in starts)


def _number(message: cri.Int64Value, field: str) -> int | None:
    """A user or group id, where one is given: 0 is root and not "none"."""
    return checks.user_or_group(message.value, field) if presence.given(message) else None


def _groups(values: Sequence[int], field: str) -> tuple[int, ...]:
    checks.at_most(MOST_GROUPS, values, field)
    return tuple(checks.user_or_group(value, f"{field}[{index}]") for index, value in enumerate(values))


def _paths(values: Sequence[str], field: str) -> tuple[str, ...]:
    checks.at_most(checks.LIST_MAX, values, field)
    return tuple(checks.straight(value, f"{field}[{index}]") for index, value in enumerate(values))


def _selinux(message: cri.SeLinuxOption, field: str) -> SELinuxLabel | None:
    if not presence.given(message):
        return None
    return SELinuxLabel(
        user=checks.name(message.user, f"{field}.user"),
        role=checks.name(message.role, f"{field}.role"),
        type=checks.name(message.type, f"{field}.type"),
        level=checks.name(message.level, f"{field}.level"),
    )


def _capabilities(message: cri.Capability, field: str) -> Capabilities:
    return Capabilities(
        add=checks.names(message.add_capabilities, f"{field}.add_capabilities", most=MOST_CAPABILITIES),
        drop=checks.names(message.drop_capabilities, f"{field}.drop_capabilities", most=MOST_CAPABILITIES),
        add_ambient=checks.names(
            message.add_ambient_capabilities, f"{field}.add_ambient_capabilities", most=MOST_CAPABILITIES
        ),
    )


def _seccomp(
    message: cri.LinuxSandboxSecurityContext | cri.LinuxContainerSecurityContext, field: str
) -> SecurityProfile | None:
    """A profile of the host is a file, named by its absolute path (CRI, SecurityProfile.localhost_ref)."""
    profile, name = _profile(message.seccomp, f"{field}.seccomp"), "seccomp.localhost_ref"
    if profile is None:
        name = "seccomp_profile_path"
        profile = _old_profile(message.seccomp_profile_path, f"{field}.{name}")
    if profile is not None and profile.kind is ProfileKind.LOCALHOST:
        checks.absolute(profile.localhost_ref, f"{field}.{name}")
    return profile


def _profile(message: cri.SecurityProfile, field: str) -> SecurityProfile | None:
    """`{}` is the runtime's default profile; absent is none asked for."""
    if not presence.given(message):
        return None
    kind = checks.member(ProfileKind, message.profile_type, f"{field}.profile_type")
    reference = checks.name(message.localhost_ref, f"{field}.localhost_ref")
    if kind is ProfileKind.LOCALHOST and not reference:
        raise InvalidInput(f"{field}.localhost_ref is empty, though profile_type is Localhost")
    if kind is not ProfileKind.LOCALHOST and reference:
        raise InvalidInput(f"{field}.localhost_ref is given, though profile_type is not Localhost")
    return SecurityProfile(kind=kind, localhost_ref=reference)


def _old_profile(value: str, field: str) -> SecurityProfile | None:
    """The form in one string that clients of v1alpha2 send, also beside the newer one, which then counts."""
    if not value:
        return None
    if value in {"runtime/default", "docker/default"}:
        return SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)
    if value == "unconfined":
        return SecurityProfile(kind=ProfileKind.UNCONFINED)
    reference = checks.name(value, field).removeprefix("localhost/")
    if reference in {"", value}:
        raise InvalidInput(f"{field}: {value[:80]!r} is not runtime/default, unconfined or localhost/<profile>")
    return SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref=reference)


def namespaces_message(options: NamespaceOptions) -> cri.NamespaceOption:
    message = cri.NamespaceOption(
        network=cri.NamespaceMode(options.network),
        pid=cri.NamespaceMode(options.pid),
        ipc=cri.NamespaceMode(options.ipc),
        target_id=options.target_id,
    )
    if options.userns is not None:
        message.userns_options = cri.UserNamespace(
            mode=cri.NamespaceMode(options.userns.mode),
            uids=id_mapping_messages(options.userns.uids),
            gids=id_mapping_messages(options.userns.gids),
        )
    return message


def id_mapping_messages(mappings: Sequence[IdMapping]) -> list[cri.IdMapping]:
    return [cri.IdMapping(host_id=m.host_id, container_id=m.container_id, length=m.length) for m in mappings]
