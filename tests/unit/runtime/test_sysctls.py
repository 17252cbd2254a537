from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.runtime import sysctls


@pytest.mark.parametrize(
    "name",
    [
        "net.ipv4.ip_unprivileged_port_start",
        "net/ipv4/conf/eth0.1/forwarding",
        "kernel.shm_rmid_forced",
        "kernel.msgmax",
        "kernel.sem",
        "fs.mqueue.msg_max",
        "kernel.domainname",
    ],
)
def test_what_a_pod_owns_it_may_set(name: str) -> None:
    sysctls.check({name: "1"}, network=True, ipc=True)


@pytest.mark.parametrize(
    "name",
    [
        "kernel.panic",
        "kernel.hostname",
        "vm.swappiness",
        "fs.file-max",
        "kernel.shmfoo",
        "user.max_net_namespaces",
        "x",
    ],
)
def test_what_would_change_the_host_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        sysctls.check({name: "1"}, network=True, ipc=True)


@pytest.mark.parametrize(
    ("name", "network", "ipc"),
    [("net.core.somaxconn", False, True), ("kernel.sem", True, False), ("net.x", False, False)],
)
def test_the_namespace_has_to_be_the_pods(name: str, network: bool, ipc: bool) -> None:
    with pytest.raises(InvalidInput, match=r"the host's here"):
        sysctls.check({name: "1"}, network=network, ipc=ipc)


def test_two_spellings_of_one_have_one_value() -> None:
    sysctls.check({"net.core.somaxconn": "1", "net/core/somaxconn": "1"}, network=True, ipc=True)
    with pytest.raises(InvalidInput, match=r"^config\.linux\.sysctls: net/core/somaxconn has another value"):
        sysctls.check({"net.core.somaxconn": "1", "net/core/somaxconn": "2"}, network=True, ipc=True)


def test_a_value_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        sysctls.check({"net.x.y": "1\0"}, network=True, ipc=True)


@pytest.mark.parametrize(
    ("name", "late"),
    [
        ("net.ipv4.conf.eth0.rp_filter", True),
        ("net/ipv6/neigh/eth0.7/mcast_solicit", True),
        ("net.ipv4.conf.all.rp_filter", False),
        ("net.ipv4.conf.default.rp_filter", False),
        ("net.ipv4.conf.lo.rp_filter", False),
        ("net.ipv4.ip_forward", False),
        ("kernel.sem", False),
    ],
)
def test_only_those_that_name_an_interface_wait_for_it(name: str, late: bool) -> None:
    assert sysctls.names_interface(name) is late


def test_a_default_gives_way_however_it_is_spelt() -> None:
    defaults = {"net.ipv4.a": "0", "net.ipv4.b": "0"}
    assert sysctls.with_defaults({}, defaults) == defaults
    assert sysctls.with_defaults({"net/ipv4/a": "7"}, defaults) == {"net/ipv4/a": "7", "net.ipv4.b": "0"}
    assert sysctls.with_defaults({"kernel.sem": "1"}, {}) == {"kernel.sem": "1"}
