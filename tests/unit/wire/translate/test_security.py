from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.security import (
    Capabilities,
    ContainerSecurity,
    GroupsPolicy,
    IdMapping,
    NamespaceMode,
    NamespaceOptions,
    ProfileKind,
    SecurityProfile,
    SELinuxLabel,
    UserNamespace,
)
from isulad_py.wire.translate import security


def inner(**fields: Any) -> ContainerSecurity:
    return security.container_security(cri.LinuxContainerSecurityContext(**fields), "s")


def outer(**fields: Any) -> Any:
    return security.pod_security(cri.LinuxSandboxSecurityContext(**fields), "s")


def test_a_whole_context_of_a_container(codec: str) -> None:
    message = cri.LinuxContainerSecurityContext(
        capabilities=cri.Capability(
            add_capabilities=["NET_ADMIN"], drop_capabilities=["ALL"], add_ambient_capabilities=["CHOWN"]
        ),
        privileged=True,
        namespace_options=cri.NamespaceOption(pid=cri.NamespaceMode.TARGET, target_id="c0"),
        selinux_options=cri.SeLinuxOption(user="u", role="r", type="t", level="l"),
        run_as_group=cri.Int64Value(value=5),
        run_as_username="app",
        readonly_rootfs=True,
        supplemental_groups=[0, 7],
        supplemental_groups_policy=cri.SupplementalGroupsPolicy.Strict,
        no_new_privs=True,
        masked_paths=["/proc/kcore"],
        readonly_paths=["/proc/sys"],
        seccomp=cri.SecurityProfile(
            profile_type=cri.SecurityProfileProfileType.Localhost, localhost_ref="/profiles/a.json"
        ),
        apparmor=cri.SecurityProfile(profile_type=cri.SecurityProfileProfileType.Unconfined),
    )
    found = security.container_security(cri.LinuxContainerSecurityContext().parse(bytes(message)), "s")
    assert found == ContainerSecurity(
        capabilities=Capabilities(add=("NET_ADMIN",), drop=("ALL",), add_ambient=("CHOWN",)),
        privileged=True,
        namespaces=NamespaceOptions(pid=NamespaceMode.TARGET, target_id="c0"),
        selinux=SELinuxLabel(user="u", role="r", type="t", level="l"),
        run_as_group=5,
        run_as_username="app",
        readonly_rootfs=True,
        supplemental_groups=(0, 7),
        groups_policy=GroupsPolicy.STRICT,
        no_new_privs=True,
        masked_paths=("/proc/kcore",),
        readonly_paths=("/proc/sys",),
        seccomp=SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="/profiles/a.json"),
        apparmor=SecurityProfile(kind=ProfileKind.UNCONFINED),
    )


ZERO = cri.Int64Value(value=0)


def ids(host_id: int = 100_000, container_id: int = 0, length: int = 65536) -> cri.IdMapping:
    return cri.IdMapping(host_id=host_id, container_id=container_id, length=length)


def userns(others: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    message = cri.NamespaceOption(userns_options=cri.UserNamespace(**fields), **(others or {}))
    return {"namespace_options": message}


def both(others: dict[str, int] | None = None, **numbers: int) -> dict[str, Any]:
    return userns(others, uids=[ids(**numbers)], gids=[ids(**numbers)])


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"run_as_user": cri.Int64Value(value=-1)}, r"^s\.run_as_user: -1 is not within 0"),
        ({"run_as_user": ZERO, "run_as_username": "app"}, r"^s: run_as_user and run_as_username exclude"),
        ({"run_as_group": ZERO}, r"^s\.run_as_group is given without run_as_user"),
        ({"supplemental_groups": [1, -1]}, r"^s\.supplemental_groups\[1\]: -1"),
        ({"supplemental_groups_policy": 2}, r"^s\.supplemental_groups_policy: 2 is not a value of GroupsPolicy"),
        ({"masked_paths": ["proc"]}, r"^s\.masked_paths\[0\]: 'proc' is not an absolute path"),
        ({"capabilities": cri.Capability(add_capabilities=["A\nB"])}, r"^s\.capabilities\.add_capabilities\[0\]"),
        ({"seccomp": cri.SecurityProfile(profile_type=7)}, r"^s\.seccomp\.profile_type: 7"),
        ({"apparmor": cri.SecurityProfile(profile_type=2)}, r"^s\.apparmor\.localhost_ref is empty"),
        ({"apparmor": cri.SecurityProfile(profile_type=1, localhost_ref="x")}, r"^s\.apparmor\.localhost_ref is given"),
        (
            {"seccomp": cri.SecurityProfile(profile_type=2, localhost_ref="x.json")},
            r"^s\.seccomp\.localhost_ref: 'x\.json' is not an absolute path",
        ),
        ({"masked_paths": ["/proc/../etc"]}, r"^s\.masked_paths\[0\]: '/proc/\.\./etc' has a part that climbs"),
        ({"readonly_paths": ["/a", "/.."]}, r"^s\.readonly_paths\[1\]: '/\.\.' has a part that climbs"),
        ({"readonly_paths": ["/a"] * 4097}, r"^s\.readonly_paths: 4097 are more than 4096"),
        ({"supplemental_groups": [7] * 65537}, r"^s\.supplemental_groups: 65537 are more than 65536"),
        (
            {"capabilities": cri.Capability(drop_capabilities=["CHOWN"] * 257)},
            r"^s\.capabilities\.drop_capabilities: 257 are more than 256",
        ),
        ({"namespace_options": cri.NamespaceOption(pid=4)}, r"^s\.namespace_options\.pid: 4 is not a value"),
        ({"namespace_options": cri.NamespaceOption(pid=3)}, r"^s\.namespace_options\.target_id is empty"),
        (
            {"namespace_options": cri.NamespaceOption(ipc=3, pid=3, target_id="x")},
            r"^s\.namespace_options\.ipc: TARGET is for pid only",
        ),
        (
            {"namespace_options": cri.NamespaceOption(network=1)},
            r"^s\.namespace_options\.network: CONTAINER is for pid",
        ),
        ({"namespace_options": cri.NamespaceOption(ipc=1)}, r"^s\.namespace_options\.ipc: CONTAINER is for pid only"),
        (
            {"namespace_options": cri.NamespaceOption(pid=1, target_id="x")},
            r"^s\.namespace_options\.target_id is given, though pid is CONTAINER",
        ),
        (
            {"namespace_options": cri.NamespaceOption(userns_options=cri.UserNamespace(mode=1))},
            r"^s\.namespace_options\.userns_options\.mode: CONTAINER is neither",
        ),
        (userns(mode=0), r"^s\.namespace_options\.userns_options\.uids: empty, though mode is POD"),
        (userns(uids=[ids()]), r"^s\.namespace_options\.userns_options\.gids: empty, though mode is POD"),
        (userns(mode=2, gids=[ids()]), r"^s\.namespace_options\.userns_options\.gids: given, though mode is NODE"),
        (both(length=0), r"^s\.namespace_options\.userns_options\.uids\[0\]\.length: 0"),
        (both(host_id=2**32 - 100), r"^s\.namespace_options\.userns_options\.uids\[0\]\.host_id: 4294967196 and"),
        (both(container_id=2**32 - 1), r"^s\.namespace_options\.userns_options\.uids\[0\]\.container_id: 429"),
        (both(container_id=1), r"^s\.namespace_options\.userns_options: id 0 of the containers is not mapped"),
        (
            userns(uids=[ids(), ids(host_id=0, container_id=65535, length=1)], gids=[ids()]),
            r"^s\.namespace_options\.userns_options\.uids\[1\]: overlaps",
        ),
        (
            userns(uids=[ids()], gids=[ids(length=10), ids(container_id=10, host_id=99_999, length=2)]),
            r"^s\.namespace_options\.userns_options\.gids\[1\]: overlaps",
        ),
        (
            userns(uids=[ids(host_id=n, container_id=n, length=1) for n in range(341)], gids=[ids()]),
            r"^s\.namespace_options\.userns_options\.uids: more than 340",
        ),
        (both(others={"network": 2}), r"^s\.namespace_options\.network: NODE in a user namespace"),
        (both(others={"pid": 2}), r"^s\.namespace_options\.pid: NODE in a user namespace"),
        (both(others={"ipc": 2}), r"^s\.namespace_options\.ipc: NODE in a user namespace"),
        ({"selinux_options": cri.SeLinuxOption(level="a\nb")}, r"^s\.selinux_options\.level has control"),
    ],
)
def test_refusals_name_the_field(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        inner(**fields)


def test_a_pod_has_no_target() -> None:
    options = cri.NamespaceOption(pid=cri.NamespaceMode.TARGET, target_id="c0")
    with pytest.raises(InvalidInput, match=r"^s\.namespace_options\.pid: TARGET is for containers only"):
        outer(namespace_options=options)
    assert inner(namespace_options=options).namespaces.target_id == "c0"


def test_a_group_of_the_pod_needs_a_user() -> None:
    with pytest.raises(InvalidInput, match=r"^s\.run_as_group is given without run_as_user"):
        outer(run_as_group=ZERO)


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("runtime/default", SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)),
        ("docker/default", SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)),
        ("unconfined", SecurityProfile(kind=ProfileKind.UNCONFINED)),
        ("localhost//var/x.json", SecurityProfile(kind=ProfileKind.LOCALHOST, localhost_ref="/var/x.json")),
    ],
)
def test_profiles_as_clients_of_v1alpha2_write_them(codec: str, text: str, profile: SecurityProfile) -> None:
    sandbox = cri.LinuxSandboxSecurityContext().parse(b"\x3a" + bytes([len(text)]) + text.encode())
    assert security.pod_security(sandbox, "s").seccomp == profile
    container = cri.LinuxContainerSecurityContext().parse(b"\x52" + bytes([len(text)]) + text.encode())
    assert security.container_security(container, "s").seccomp == profile
    confined = cri.LinuxContainerSecurityContext().parse(b"\x4a" + bytes([len(text)]) + text.encode())
    assert security.container_security(confined, "s").apparmor == profile


def test_the_newer_profile_counts_beside_the_old_form() -> None:
    both = cri.LinuxSandboxSecurityContext().parse(b"\x3a\x0aunconfined\x4a\x00")
    assert security.pod_security(both, "s").seccomp == SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)


@pytest.mark.parametrize("text", ["other", "localhost/", "localhost", "local\nhost/x"])
def test_old_profiles_that_say_nothing(text: str) -> None:
    message = cri.LinuxSandboxSecurityContext().parse(b"\x3a" + bytes([len(text)]) + text.encode())
    with pytest.raises(InvalidInput, match=r"^s\.seccomp_profile_path"):
        security.pod_security(message, "s")


def first_and_more(host_id: int, length: int, gap: int) -> tuple[IdMapping, ...]:
    first = IdMapping(host_id=host_id, container_id=0, length=length)
    return first, IdMapping(host_id=host_id + length + gap, container_id=length + gap, length=1)


NUMBERS = st.integers(1, 2**30)
MAPPINGS = st.builds(first_and_more, st.integers(0, 2**30), NUMBERS, NUMBERS)
USERNS = st.builds(UserNamespace, mode=st.just(NamespaceMode.POD), uids=MAPPINGS, gids=MAPPINGS) | st.just(
    UserNamespace(mode=NamespaceMode.NODE)
)
POD = st.just(NamespaceMode.POD)
SHARED = st.sampled_from([NamespaceMode.POD, NamespaceMode.NODE])
OWN = st.sampled_from([NamespaceMode.POD, NamespaceMode.CONTAINER])


@given(
    st.builds(NamespaceOptions, network=SHARED, pid=SHARED | OWN, ipc=SHARED)
    | st.builds(
        NamespaceOptions, network=SHARED, pid=st.just(NamespaceMode.TARGET), ipc=SHARED, target_id=st.just("c0")
    )
    | st.builds(NamespaceOptions, network=POD, pid=OWN, ipc=POD, userns=USERNS)
)
def test_namespaces_go_out_and_come_back(options: NamespaceOptions) -> None:
    message = cri.NamespaceOption().parse(bytes(security.namespaces_message(options)))
    assert security.namespaces(message, "n") == options


def test_an_empty_user_namespace_is_not_an_absent_one(codec: str) -> None:
    assert security.namespaces(cri.NamespaceOption().parse(b""), "n").userns is None
    with pytest.raises(InvalidInput, match=r"^n\.userns_options\.uids: empty"):
        security.namespaces(cri.NamespaceOption().parse(b"\x2a\x00"), "n")
