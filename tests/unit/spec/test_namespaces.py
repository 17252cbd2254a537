from __future__ import annotations

import pytest

from isulad_py.model.container import Identity
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.pod import PodEnvironment
from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, UserNamespace
from isulad_py.spec import namespaces
from isulad_py.spec.inputs import Handler
from isulad_py.spec.schema import LinuxIdMapping, Namespace
from tests.fakes.facts import host_facts
from tests.fakes.spec_inputs import ENVIRONMENT


def test_what_the_pod_owns_is_joined_by_path() -> None:
    assert namespaces.shared(ENVIRONMENT) == [
        Namespace(type="network", path="/run/pods/p/net"),
        Namespace(type="ipc", path="/run/pods/p/ipc"),
        Namespace(type="uts", path="/run/pods/p/uts"),
    ]
    assert namespaces.shared(PodEnvironment()) == []


@pytest.mark.parametrize(
    ("version", "privileged", "kinds"), [(1, False, ["mount"]), (2, False, ["mount", "cgroup"]), (2, True, ["mount"])]
)
def test_cgroups_are_hidden_on_v2_but_from_a_privileged_container(
    version: int, privileged: bool, kinds: list[str]
) -> None:
    found = namespaces.own(host_facts(cgroup_version=version), privileged=privileged)
    assert [namespace.type for namespace in found] == kinds


POD = NamespaceOptions()


@pytest.mark.parametrize(
    ("mode", "pod_path", "expected"),
    [
        (NamespaceMode.POD, "/proc/7/ns/pid", [Namespace(type="pid", path="/proc/7/ns/pid")]),
        (NamespaceMode.POD, "", [Namespace(type="pid")]),
        (NamespaceMode.CONTAINER, "/proc/7/ns/pid", [Namespace(type="pid")]),
        (NamespaceMode.NODE, "/proc/7/ns/pid", []),
        (NamespaceMode.TARGET, "/proc/7/ns/pid", [Namespace(type="pid", path="/proc/9/ns/pid")]),
    ],
)
def test_the_pid_namespace(mode: NamespaceMode, pod_path: str, expected: list[Namespace]) -> None:
    options = NamespaceOptions(pid=mode)
    assert namespaces.pid(options, pod=POD, pod_path=pod_path, target_path="/proc/9/ns/pid") == expected


def test_the_hosts_processes_are_shared_as_the_pods() -> None:
    """By clients that say nothing for the container."""
    of_host = NamespaceOptions(pid=NamespaceMode.NODE)
    assert namespaces.pid(NamespaceOptions(), pod=of_host, pod_path="", target_path="") == []
    own = NamespaceOptions(pid=NamespaceMode.CONTAINER)
    assert namespaces.pid(own, pod=of_host, pod_path="", target_path="") == [Namespace(type="pid")]


def test_a_target_that_is_not_there_is_refused() -> None:
    options = NamespaceOptions(pid=NamespaceMode.TARGET, target_id="abc")
    with pytest.raises(InvalidInput, match=r"target_id.*abc"):
        namespaces.pid(options, pod=POD, pod_path="", target_path="")


def test_user_namespaces_need_a_runtime_that_has_them() -> None:
    userns = UserNamespace(mode=NamespaceMode.POD, uids=(IdMapping(host_id=9, container_id=0, length=5),))
    with pytest.raises(Unsupported, match="userns_options"):
        namespaces.id_mappings(userns, Handler())
    uids, gids = namespaces.id_mappings(userns, Handler(user_namespaces=True))
    assert uids == (LinuxIdMapping(container_id=0, host_id=9, size=5),)
    assert gids == ()
    assert namespaces.id_mappings(userns, Handler(user_namespaces=True, reads_id_maps=True)) == ((), ())


@pytest.mark.parametrize("userns", [None, UserNamespace(mode=NamespaceMode.NODE)])
def test_the_hosts_user_namespace_needs_nothing(userns: UserNamespace | None) -> None:
    users = NamespaceOptions(userns=userns).own_users
    assert namespaces.id_mappings(users, Handler()) == ((), ())
    namespaces.check_identity(Identity(uid=4_000_000, gid=4_000_000), users)


@pytest.mark.parametrize(
    ("identity", "field"),
    [
        (Identity(uid=10), r"run_as_user: 10 is not mapped"),
        (Identity(uid=9, gid=11), r"run_as_group: 11 is not mapped"),
        (Identity(gid=9, supplemental_groups=(3, 12)), r"supplemental_groups: 12 is not mapped"),
    ],
)
def test_who_is_not_mapped_is_refused_by_field(identity: Identity, field: str) -> None:
    ids = (IdMapping(host_id=100_000, container_id=0, length=10),)
    users = UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)
    namespaces.check_identity(Identity(uid=9, gid=9, supplemental_groups=(0, 9)), users)
    with pytest.raises(InvalidInput, match=rf"^config\.linux\.security_context\.{field}"):
        namespaces.check_identity(identity, users)
