from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Attachment, Dns, PortMapping, Protocol
from isulad_py.network import arguments


def pod(**keys: Any) -> Attachment:
    known = {"pod_id": "abc", "name": "web", "namespace": "shop", "uid": "u-1", "netns_path": "/ns"}
    return Attachment(**{**known, **keys})


def args(**keys: Any) -> dict[str, Any]:
    return arguments.capability_args(pod(**keys))


def test_cni_args_are_what_kubernetes_plugins_expect() -> None:
    assert arguments.cni_args(pod()) == (
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=abc;K8S_POD_UID=u-1"
    )


def test_extension_annotations() -> None:
    annotations = {
        "extension.network.kubernetes.io/cni": "fast",
        "extension.network.kubernetes.io/cniargs/a": "IP=10.0.0.9",
        "extension.network.kubernetes.io/cniargs/b": "X=1;Y=2",
        "extension.network.kubernetes.io/cniargs/c": "X=1=2",
        "extension.network.kubernetes.io/cniargs/d": "nothing",
        "extension.network.kubernetes.io/cniargs/e": "K8S_POD_NAME=other",
        "extension.network.kubernetes.io/cniargs/f": "=value",
        "extension.network.kubernetes.io/cniargs/g": "LINE=1\n",
        "other": "Z=1",
    }
    assert arguments.cni_args(pod(annotations=annotations)) == (
        arguments.cni_args(pod()) + ";CNI_MUTLINET_EXTENSION=fast;IP=10.0.0.9"
    )
    assert arguments.cni_args(pod(annotations={"extension.network.kubernetes.io/cni": "a;b"})) == arguments.cni_args(
        pod()
    )


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "pod_id"])
@pytest.mark.parametrize("value", ["a;IP=1.2.3.4", "a=b", "a\0b", "a\n"])
def test_names_cannot_smuggle_arguments_in(field: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=field.replace("_", " ")):
        arguments.cni_args(pod(**{field: value}))


def test_nothing_to_tell_is_not_told() -> None:
    assert args() == {}
    assert args(dns=Dns(), port_mappings=(PortMapping(container_port=80),)) == {}


def test_port_mappings() -> None:
    mappings = (
        PortMapping(container_port=80, host_port=8080),
        PortMapping(container_port=81),
        PortMapping(container_port=82, host_port=8082, protocol=Protocol.SCTP, host_ip="127.0.0.1"),
        PortMapping(container_port=83, host_port=8083, protocol=Protocol.UDP, host_ip="::1"),
    )
    assert args(port_mappings=mappings)["portMappings"] == [
        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
        {"hostPort": 8082, "containerPort": 82, "protocol": "sctp", "hostIP": "127.0.0.1"},
        {"hostPort": 8083, "containerPort": 83, "protocol": "udp", "hostIP": "::1"},
    ]


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        (PortMapping(container_port=80, host_port=65536), "host_port"),
        (PortMapping(container_port=80, host_port=-1), "host_port"),
        (PortMapping(container_port=0, host_port=80), "container_port"),
        (PortMapping(container_port=80, host_port=80, host_ip="here"), "host_ip"),
    ],
)
def test_wrong_port_mappings(mapping: PortMapping, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"port_mappings\[0\]\.{field}"):
        args(port_mappings=(mapping,))


def test_dns_and_cgroup_path() -> None:
    assert args(dns=Dns(servers=("10.0.0.10",), options=("ndots:5",)), cgroup_path="/kubepods/pod1") == {
        "dns": {"servers": ["10.0.0.10"], "options": ["ndots:5"]},
        "cgroupPath": "/kubepods/pod1",
    }


def test_ip_ranges() -> None:
    assert args(pod_cidr="10.1.2.0/24,fd00:1::/64")["ipRanges"] == [
        [{"subnet": "10.1.2.0/24"}],
        [{"subnet": "fd00:1::/64"}],
    ]


@pytest.mark.parametrize("cidr", ["10.1.2.0", "10.1.2.0/33", "x", "10.1.2.0/24,", ",", "10.1.2.0/24;fd00::/64"])
def test_wrong_cidrs(cidr: str) -> None:
    with pytest.raises(InvalidInput, match="pod_cidr"):
        arguments.subnets(cidr)


def test_cidrs_are_put_in_order() -> None:
    assert arguments.subnets(" 10.1.2.7/24 , fd00::1/64 ") == ("10.1.2.0/24", "fd00::/64")
    assert arguments.subnets("") == ()


def test_bandwidth() -> None:
    annotations = {"kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "1G"}
    assert args(annotations=annotations)["bandwidth"] == {
        "ingressRate": 10_000_000,
        "ingressBurst": 2147483647,
        "egressRate": 1_000_000_000,
        "egressBurst": 2147483647,
    }
    assert args(annotations={"kubernetes.io/engress-bandwidth": "1k"})["bandwidth"] == {
        "egressRate": 1000,
        "egressBurst": 2147483647,
    }
    both = {"kubernetes.io/engress-bandwidth": "1k", "kubernetes.io/egress-bandwidth": "2k"}
    assert args(annotations=both)["bandwidth"]["egressRate"] == 2000


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1000", 1000),
        ("+1000", 1000),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Mi", 1572864),
        ("10M", 10_000_000),
        ("1P", 10**15),
        ("1e3", 1000),
        ("1E3", 1000),
        ("2e+6", 2_000_000),
        ("1000.0001", 1001),
        (".5M", 500_000),
        ("5.k", 5000),
        ("1000000m", 1000),
        ("0.001E", 10**15),
    ],
)
def test_quantities(text: str, rate: int) -> None:
    assert arguments.bits_per_second(text, "a") == rate


@pytest.mark.parametrize(
    "text",
    ["", "x", "10 M", "10MB", "-1M", "999", "2P", "1e99", "1e999999999", "1K", "1E", "9" * 100, "0x10", "\u0661k"],
)
def test_wrong_quantities(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"annotation kubernetes\.io/x"):
        arguments.bits_per_second(text, "kubernetes.io/x")


@given(st.text(max_size=12))
def test_any_quantity_is_a_rate_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert 1000 <= arguments.bits_per_second(text, "a") <= 10**15
