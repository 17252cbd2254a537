from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.ids import PodId
from isulad_py.model.network import Dns, NetworkResult, PortMapping, Protocol
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord
from isulad_py.model.resources import Resources
from isulad_py.model.security import NamespaceMode, NamespaceOptions, PodSecurity
from isulad_py.wire.translate import pods
from tests.cri_messages import messages


def pod(**fields: Any) -> cri.PodSandboxConfig:
    return cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web"), **fields)


def test_a_whole_configuration(codec: str) -> None:
    message = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="web", uid="u1", namespace="default", attempt=2),
        hostname="web",
        log_directory="/var/log/pods/web",
        dns_config=cri.DnsConfig(servers=["10.0.0.10"], searches=["svc"], options=["ndots:5"]),
        port_mappings=[cri.PortMapping(protocol=cri.Protocol.SCTP, container_port=80, host_port=8080, host_ip="::1")],
        labels={"app": "web", "": ""} if codec == "rust" else {"app": "web"},
        annotations={"note": "a\nb"},
        linux=cri.LinuxPodSandboxConfig(
            cgroup_parent="/kubepods/pod1",
            sysctls={"net.ipv4.ip_forward": "1"},
            resources=cri.LinuxContainerResources(cpu_shares=2),
            security_context=cri.LinuxSandboxSecurityContext(
                namespace_options=cri.NamespaceOption(network=cri.NamespaceMode.NODE)
            ),
        ),
    )
    config = pods.pod_config(cri.PodSandboxConfig().parse(bytes(message)))
    assert config == PodConfig(
        metadata=PodMetadata(name="web", uid="u1", namespace="default", attempt=2),
        hostname="web",
        log_directory="/var/log/pods/web",
        dns=Dns(servers=("10.0.0.10",), searches=("svc",), options=("ndots:5",)),
        port_mappings=(PortMapping(protocol=Protocol.SCTP, container_port=80, host_port=8080, host_ip="::1"),),
        labels=message.labels,
        annotations={"note": "a\nb"},
        cgroup_parent="/kubepods/pod1",
        security=PodSecurity(namespaces=NamespaceOptions(network=NamespaceMode.NODE)),
        sysctls={"net.ipv4.ip_forward": "1"},
        resources=Resources(cpu_shares=2),
    )


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (cri.PodSandboxConfig(), r"^config is missing"),
        (cri.PodSandboxConfig(hostname="x"), r"^config\.metadata is missing"),
        (cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(uid="u")), r"^config\.metadata\.name is empty"),
        (
            cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a\nb")),
            r"^config\.metadata\.name has control characters",
        ),
        (
            cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a", namespace="\0")),
            r"^config\.metadata\.namespace has control",
        ),
        (pod(hostname="h" * 65), r"^config\.hostname is longer than 64"),
        (pod(hostname="h\n"), r"^config\.hostname: 'h\\n' has characters"),
        (pod(hostname="a b"), r"^config\.hostname: 'a b' has characters that no hostname has"),
        (pod(hostname="a/b"), r"^config\.hostname: 'a/b' has characters"),
        (pod(log_directory="logs"), r"^config\.log_directory: 'logs' is not an absolute path"),
        (pod(log_directory="/logs/../etc"), r"^config\.log_directory: .* has a part that climbs"),
        (pod(labels={"a": "b" * 512 * 1024}), r"^config\.labels: more than 524288 bytes together"),
        (pod(annotations={str(n): "b" * 1024 for n in range(512)}), r"^config\.annotations: more than 524288 bytes"),
        (pod(dns_config=cri.DnsConfig(searches=["a b"])), r"^config\.dns_config\.searches\[0\]: 'a b' is not one word"),
        (pod(dns_config=cri.DnsConfig(options=[""])), r"^config\.dns_config\.options\[0\]: '' is not one word"),
        (pod(dns_config=cri.DnsConfig(servers=["::1"] * 257)), r"^config\.dns_config\.servers: 257 are more than 256"),
        (pod(dns_config=cri.DnsConfig(servers=["1.1.1.1\nfoo"])), r"^config\.dns_config\.servers\[0\] has control"),
        (pod(port_mappings=[cri.PortMapping(protocol=9)]), r"^config\.port_mappings\[0\]\.protocol: 9 is not a value"),
        (pod(port_mappings=[cri.PortMapping(container_port=-1)]), r"\.container_port: -1 is not a port"),
        (pod(port_mappings=[cri.PortMapping(host_port=65536)]), r"\.host_port: 65536 is not a port"),
        (pod(port_mappings=[cri.PortMapping(host_ip="host")]), r"\.host_ip: 'host' is not an IP address"),
        (pod(port_mappings=[cri.PortMapping(host_port=80)]), r"^config\.port_mappings\[0\]\.container_port is 0"),
        (
            pod(port_mappings=[cri.PortMapping(container_port=n, host_port=80) for n in (1, 2)]),
            r"^config\.port_mappings\[1\]\.host_port: 80 leads to another",
        ),
        (pod(linux=cri.LinuxPodSandboxConfig(cgroup_parent="/a/../b")), r"^config\.linux\.cgroup_parent: .* climbs"),
        (pod(linux=cri.LinuxPodSandboxConfig(sysctls={"../x": "1"})), r"^config\.linux\.sysctls: '\.\./x'"),
        (pod(linux=cri.LinuxPodSandboxConfig(sysctls={"a": "\0"})), r"^config\.linux\.sysctls\[a\] has control"),
        (pod(linux=cri.LinuxPodSandboxConfig(sysctls={"a": "1\n2"})), r"^config\.linux\.sysctls\[a\] has control"),
        (
            pod(linux=cri.LinuxPodSandboxConfig(sysctls={f"a.{n}": "1" for n in range(1025)})),
            r"^config\.linux\.sysctls: 1025 are more than 1024",
        ),
        (
            pod(linux=cri.LinuxPodSandboxConfig(overhead=cri.LinuxContainerResources(cpu_period=-1))),
            r"^config\.linux\.overhead\.cpu_period: -1 is less than 0",
        ),
    ],
)
def test_refusals_name_the_field(message: cri.PodSandboxConfig, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        pods.pod_config(message)


def test_what_several_containers_of_a_pod_may_say_together() -> None:
    """Ports as a kubelet lists them, container after container: without a host port, twice, for each protocol and host
    address; and the two numbers of a range with a tab between."""
    ports = [
        cri.PortMapping(container_port=80),
        cri.PortMapping(container_port=80),
        cri.PortMapping(container_port=80, host_port=8080),
        cri.PortMapping(container_port=80, host_port=8080),
        cri.PortMapping(container_port=81, host_port=8080, protocol=cri.Protocol.UDP),
        cri.PortMapping(container_port=81, host_port=8080, host_ip="127.0.0.1"),
        cri.PortMapping(container_port=82, host_port=8080, host_ip="127.0.0.2"),
    ]
    sysctls = {"net.ipv4.ip_local_port_range": "1024\t2048"}
    found = pods.pod_config(pod(port_mappings=ports, linux=cri.LinuxPodSandboxConfig(sysctls=sysctls)))
    assert len(found.port_mappings) == len(ports)
    assert found.sysctls == sysctls


@given(messages(cri.PodSandboxConfig))
def test_any_message_is_translated_or_refused_by_name(message: cri.PodSandboxConfig) -> None:
    message.metadata = cri.PodSandboxMetadata(name="web")
    complaint = ""
    try:
        config = pods.pod_config(cri.PodSandboxConfig().parse(bytes(message)))
    except (InvalidInput, Unsupported) as refusal:
        complaint = str(refusal)
    else:
        assert config.labels == message.labels
        assert config.annotations == message.annotations
    assert complaint.startswith("config") or not complaint


def test_windows_is_refused_by_name() -> None:
    security = cri.WindowsSandboxSecurityContext(host_process=True)
    message = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="web"), windows=cri.WindowsPodSandboxConfig(security_context=security)
    )
    with pytest.raises(Unsupported, match=r"^config\.windows is not supported"):
        pods.pod_config(message)


def record(**facts: Any) -> PodRecord:
    config = PodConfig(
        metadata=PodMetadata(name="web", uid="u", namespace="ns", attempt=1), labels={"a": "b"}, annotations={"c": "d"}
    )
    return PodRecord(**{"id": PodId("p1"), "config": config, "created_at": 5, "runtime_handler": "runc", **facts})


READY = cri.PodSandboxState.SANDBOX_READY
NOTREADY = cri.PodSandboxState.SANDBOX_NOTREADY


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, NOTREADY),
        ({"ready_at": 6}, READY),
        ({"ready_at": 6, "stopping_at": 7}, NOTREADY),
        ({"ready_at": 6, "removing_at": 7}, NOTREADY),
    ],
)
def test_states(facts: dict[str, int], state: cri.PodSandboxState) -> None:
    assert pods.pod_item(record(**facts)).state == state
    assert pods.pod_status(record(**facts)).state == state


def test_a_list_item(codec: str) -> None:
    item = cri.PodSandbox().parse(bytes(pods.pod_item(record(ready_at=6))))
    assert item == cri.PodSandbox(
        id="p1",
        metadata=cri.PodSandboxMetadata(name="web", uid="u", namespace="ns", attempt=1),
        state=READY,
        created_at=5,
        labels={"a": "b"},
        annotations={"c": "d"},
        runtime_handler="runc",
    )


def test_a_whole_status(codec: str) -> None:
    options = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    config = PodConfig(
        metadata=PodMetadata(name="web", uid="u", namespace="ns", attempt=1),
        labels={"a": "b"},
        annotations={"c": "d"},
        security=PodSecurity(namespaces=options),
    )
    stopped = record(config=config, ready_at=6, stopping_at=7)
    assert cri.PodSandboxStatus().parse(bytes(pods.pod_status(stopped))) == cri.PodSandboxStatus(
        id="p1",
        metadata=cri.PodSandboxMetadata(name="web", uid="u", namespace="ns", attempt=1),
        state=NOTREADY,
        created_at=5,
        network=cri.PodSandboxNetworkStatus(),
        linux=cri.LinuxPodSandboxStatus(
            namespaces=cri.Namespace(
                options=cri.NamespaceOption(network=cri.NamespaceMode.NODE, pid=cri.NamespaceMode.CONTAINER)
            )
        ),
        labels={"a": "b"},
        annotations={"c": "d"},
        runtime_handler="runc",
    )


def test_a_status_has_every_address(codec: str) -> None:
    dual = record(ready_at=6, network=NetworkResult(ips=("10.0.0.5", "fd00::5")))
    status = cri.PodSandboxStatus().parse(bytes(pods.pod_status(dual)))
    assert status.network.ip == "10.0.0.5"
    assert [extra.ip for extra in status.network.additional_ips] == ["fd00::5"]
    assert status.metadata.uid == "u"
    assert status.created_at == 5


def test_a_pod_on_the_hosts_network_has_no_address() -> None:
    security = PodSecurity(namespaces=NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER))
    host = record(
        config=PodConfig(metadata=PodMetadata(name="h"), security=security), network=NetworkResult(ips=("10.0.0.5",))
    )
    status = pods.pod_status(host)
    assert status.network.ip == ""
    assert status.linux.namespaces.options.network == cri.NamespaceMode.NODE
    assert status.linux.namespaces.options.pid == cri.NamespaceMode.CONTAINER


def test_attributes() -> None:
    assert pods.pod_attributes(record()) == cri.PodSandboxAttributes(
        id="p1",
        metadata=cri.PodSandboxMetadata(name="web", uid="u", namespace="ns", attempt=1),
        labels={"a": "b"},
        annotations={"c": "d"},
    )
