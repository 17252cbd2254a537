"""What is wrong is refused with its field's name, and leaves nothing behind (the fixture looks)."""

from __future__ import annotations

from collections.abc import Callable
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host.facts import read_facts
from tests.stand.node import Node

pytestmark = pytest.mark.root


def refuse_pod(node: Node, config: Any) -> tuple[str, str]:
    outcome = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=config))
    assert node.left_of_pods() == []
    return outcome


def refuse_container(node: Node, pod_id: str, config: Any) -> tuple[str, str]:
    request = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
    outcome = node.fails("CreateContainer", request)
    assert node.containers() == []
    return outcome


def test_pods(node: Node) -> None:
    code, words = refuse_pod(node, node.m.PodSandboxConfig())
    assert code == "INVALID_ARGUMENT"
    assert "metadata" in words
    config = node.pod_config()
    config.linux.sysctls["vm.swappiness"] = "1"
    code, words = refuse_pod(node, config)
    assert code == "INVALID_ARGUMENT"
    assert "vm.swappiness" in words
    config = node.pod_config(port_mappings=[node.m.PortMapping(container_port=1, host_port=2)] * 1025)
    code, words = refuse_pod(node, config)
    assert (code, "config.port_mappings" in words) == ("INVALID_ARGUMENT", True)
    config = node.pod_config()
    config.linux.security_context.namespace_options.network = 77
    assert refuse_pod(node, config)[0] == "INVALID_ARGUMENT"
    request = node.m.RunPodSandboxRequest(config=node.pod_config(), runtime_handler="no-such-handler")
    code, words = node.fails("RunPodSandbox", request)
    assert code in {"INVALID_ARGUMENT", "NOT_FOUND"}
    assert "no-such-handler" in words


def test_containers(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    missing = m.Mount(container_path="/x", host_path="/etc/passwd/below")
    cases: list[tuple[Any, str, str]] = [
        (node.container_config(mounts=[missing]), "INVALID_ARGUMENT", "mounts[0].host_path"),
        (
            node.container_config(mounts=[m.Mount(container_path="x", host_path="/tmp")]),
            "INVALID_ARGUMENT",
            "container_path",
        ),
        (node.container_config(envs=[m.KeyValue(key="A=B", value=b"1")]), "INVALID_ARGUMENT", "envs"),
        (node.container_config(labels={"a\nb": "c"}), "INVALID_ARGUMENT", "config.labels"),
        (node.container_config(annotations={"a": "b\0"}), "INVALID_ARGUMENT", "config.annotations[a]"),
        (node.container_config(working_dir="/" + "a" * 300), "INVALID_ARGUMENT", "working_dir"),
        (
            node.container_config(mounts=[m.Mount(container_path="/" + "a/" * 3000, host_path="/tmp")]),
            "INVALID_ARGUMENT",
            "mounts[0].container_path",
        ),
        (
            node.container_config(annotations={"io.kubernetes.cri.rdt-class": "gold"}),
            "UNIMPLEMENTED",
            "io.kubernetes.cri.rdt-class",
        ),
        (
            node.container_config(annotations={"io.kubernetes.cri.blockio-class": "gold"}),
            "UNIMPLEMENTED",
            "io.kubernetes.cri.blockio-class",
        ),
    ]
    for config, wanted, field in cases:
        code, words = refuse_container(node, pod_id, config)
        assert (code, field in words) == (wanted, True), words
    config = node.container_config()
    config.image.image = f"{node.registry}/no/such:image"
    assert refuse_container(node, pod_id, config)[0] == "NOT_FOUND"
    config.image.image = "not a reference"
    assert refuse_container(node, pod_id, config)[0] == "INVALID_ARGUMENT"
    config = node.container_config()
    config.linux.security_context.run_as_username = "nobody-of-that-name"
    assert "nobody-of-that-name" in refuse_container(node, pod_id, config)[1]
    config = node.container_config()
    config.linux.security_context.capabilities.add_capabilities.append("CAP_NONSENSE")
    assert "CAP_NONSENSE" in refuse_container(node, pod_id, config)[1]
    config.metadata.name = ""
    assert refuse_container(node, pod_id, config)[0] == "INVALID_ARGUMENT"
    assert (
        node.fails(
            "CreateContainer", m.CreateContainerRequest(pod_sandbox_id="0123456789", config=node.container_config())
        )[0]
        == "NOT_FOUND"
    )


def test_images(node: Node) -> None:
    def pull(image: str) -> tuple[str, str]:
        return node.fails("PullImage", node.m.PullImageRequest(image=node.m.ImageSpec(image=image)))

    code, words = pull(f"{node.registry}/no/such:image")
    assert code == "NOT_FOUND"
    assert node.registry in words
    assert pull("not a reference")[0] == "INVALID_ARGUMENT"
    assert pull("127.0.0.1:1/nobody/there:latest")[0] == "UNAVAILABLE"
    status = node.call("ImageStatus", node.m.ImageStatusRequest(image=node.m.ImageSpec(image="no/such:image")))
    assert not status.HasField("image")


@pytest.mark.skipif(read_facts().apparmor, reason="this kernel has AppArmor")
def test_apparmor_profiles_where_the_kernel_has_none(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    for profile in (
        m.SecurityProfile(),
        m.SecurityProfile(profile_type=m.SecurityProfile.Localhost, localhost_ref="x"),
    ):
        config = node.container_config()
        config.linux.security_context.apparmor.CopyFrom(profile)
        code, words = refuse_container(node, pod_id, config)
        assert code == "UNIMPLEMENTED"
        assert "security_context.apparmor: this kernel has no AppArmor" in words
    config = node.container_config()
    config.linux.security_context.apparmor.profile_type = m.SecurityProfile.Unconfined
    node.create(pod_id, config)


def senseless(node: Node, name: str) -> tuple[Any, str]:
    """A pod that contradicts itself or has no end, and the field that is at fault."""
    m, config = node.m, node.pod_config()
    security, options = config.linux.security_context, config.linux.security_context.namespace_options

    def ports(*mappings: Any) -> None:
        config.port_mappings.extend(mappings)

    def beside(field: str, sysctl: str) -> None:
        setattr(options, field, m.NODE)
        config.linux.sysctls[sysctl] = "1"

    cases: dict[str, tuple[Callable[[], object], str]] = {
        "target": (
            lambda: options.MergeFrom(m.NamespaceOption(pid=m.TARGET, target_id="abc")),
            "config.linux.security_context.namespace_options.pid",
        ),
        "target without its mode": (lambda: setattr(options, "target_id", "abc"), "namespace_options.target_id"),
        "a network for each container": (lambda: setattr(options, "network", m.CONTAINER), "namespace_options.network"),
        "no seccomp profile": (
            lambda: security.seccomp.MergeFrom(m.SecurityProfile(profile_type=2, localhost_ref="/no/such.json")),
            "config.linux.security_context.seccomp.localhost_ref",
        ),
        "endless seccomp profile": (
            lambda: security.seccomp.MergeFrom(m.SecurityProfile(profile_type=2, localhost_ref="/dev/zero")),
            "config.linux.security_context.seccomp.localhost_ref",
        ),
        "sysctl of the host's network": (lambda: beside("network", "net.ipv4.ip_forward"), "linux.sysctls"),
        "sysctl of the host's IPC": (lambda: beside("ipc", "kernel.shmmax"), "linux.sysctls"),
        "sysctl of two lines": (
            lambda: config.linux.sysctls.update({"net.ipv4.ip_forward": "1\n0"}),
            "config.linux.sysctls[net.ipv4.ip_forward]",
        ),
        "host port of nothing": (lambda: ports(m.PortMapping(host_port=80)), "config.port_mappings[0].container_port"),
        "host port twice": (
            lambda: ports(*(m.PortMapping(container_port=n, host_port=80) for n in (1, 2))),
            "config.port_mappings[1].host_port",
        ),
        "hostname": (lambda: setattr(config, "hostname", "a b"), "config.hostname"),
        "search list without end": (
            lambda: config.dns_config.searches.extend(["a.b"] * 257),
            "config.dns_config.searches",
        ),
        "climbing log directory": (
            lambda: setattr(config, "log_directory", "/var/../etc"),
            "config.log_directory",
        ),
        "long annotations": (lambda: config.annotations.update({"a": "x" * 512 * 1024}), "config.annotations"),
        "many sysctls": (
            lambda: config.linux.sysctls.update({f"net.x{n}": "1" for n in range(1025)}),
            "config.linux.sysctls",
        ),
        "many groups": (lambda: security.supplemental_groups.extend([7] * 50_000 * 2), "supplemental_groups"),
    }
    spoil, field = cases[name]
    spoil()
    return config, field


SENSELESS = (
    "target", "target without its mode", "a network for each container", "no seccomp profile",
    "endless seccomp profile", "sysctl of the host's network", "sysctl of the host's IPC", "sysctl of two lines",
    "host port of nothing", "host port twice", "hostname", "search list without end", "climbing log directory",
    "long annotations", "many sysctls", "many groups",
)  # fmt: skip


@pytest.mark.parametrize("name", SENSELESS)
def test_pods_that_make_no_sense(node: Node, name: str) -> None:
    config, field = senseless(node, name)
    code, words = refuse_pod(node, config)
    assert (code, field in words) == ("INVALID_ARGUMENT", True), words


def test_a_pod_on_the_hosts_network_may_name_ports(node: Node) -> None:
    """As kubelets send it: the host port is the container's."""
    config = node.pod_config(hostname="", port_mappings=[node.m.PortMapping(container_port=80, host_port=80)])
    config.hostname = ""
    config.linux.security_context.namespace_options.network = node.m.NODE
    assert node.pod_status(node.run_pod(config)).network.ip == ""


def test_logs_where_none_can_be(node: Node) -> None:
    config = node.pod_config()
    Path(config.log_directory, "main.log").mkdir()
    code, words = refuse_container(node, node.run_pod(config), node.container_config())
    assert (code, "log_path: " in words, "main.log" in words) == ("FAILED_PRECONDITION", True, True), words
    config = node.pod_config()
    config.log_directory = "/etc/passwd"
    code, words = refuse_container(node, node.run_pod(config), node.container_config())
    assert (code, "log_path: /etc/passwd" in words) == ("FAILED_PRECONDITION", True), words


DEEP_PATH = "/" + "a/" * 3000


def hostile(node: Node, name: str) -> tuple[Any, str]:
    """A request that no runtime can serve, and the field that is at fault where we can tell."""
    m, config = node.m, node.container_config()
    security, resources = config.linux.security_context, config.linux.resources

    def mount(container_path: str) -> None:
        config.mounts.append(m.Mount(container_path=container_path, host_path="/tmp"))

    def device(container_path: str) -> None:
        config.devices.append(m.Device(container_path=container_path, host_path="/dev/null", permissions="r"))

    cases: dict[str, tuple[Callable[[], object], str]] = {
        "long masked path": (lambda: security.masked_paths.append("/" + "a" * 5000), "security_context.masked_paths"),
        "deep masked path": (lambda: security.masked_paths.append(DEEP_PATH), "security_context.masked_paths"),
        "read-only path below a file": (lambda: security.readonly_paths.append("/etc/passwd/q"), "/etc/passwd/q"),
        "deep container path": (lambda: mount(DEEP_PATH), "mounts[0].container_path"),
        "mount in sysfs": (lambda: mount("/sys/nowhere"), "/sys/nowhere"),
        "mount below a file": (lambda: mount("/etc/passwd/x"), "/etc/passwd"),
        "device in procfs": (lambda: device("/proc/x"), "/proc/x"),
        "device below a file": (lambda: device("/etc/passwd/x"), "/etc/passwd"),
        "long log path": (lambda: setattr(config, "log_path", "l" * 300 + ".log"), "config.log_path"),
        "long working directory": (lambda: setattr(config, "working_dir", "/" + "w" * 300), "config.working_dir"),
        "working directory that is a file": (
            lambda: setattr(config, "working_dir", "/etc/passwd"),
            "config.working_dir",
        ),
        "no such processors": (lambda: setattr(resources, "cpuset_cpus", "0-99999999999999"), "cpuset_cpus"),
        "no such memory": (lambda: setattr(resources, "cpuset_mems", "99999"), "cpuset_mems"),
        "climbing masked path": (
            lambda: security.masked_paths.append("/proc/../etc"),
            "security_context.masked_paths[0]",
        ),
        "climbing container path": (lambda: mount("/x/../y"), "config.mounts[0].container_path"),
        "climbing device": (lambda: device("/dev/../x"), "config.devices[0].container_path"),
        "mount on procfs": (lambda: mount("/proc"), "/proc"),
        "log directory for a log": (lambda: setattr(config, "log_path", "."), "config.log_path"),
        "no seccomp profile": (
            lambda: security.seccomp.MergeFrom(m.SecurityProfile(profile_type=2, localhost_ref="/no/such.json")),
            "config.linux.security_context.seccomp.localhost_ref",
        ),
        "target without its mode": (
            lambda: setattr(security.namespace_options, "target_id", "abc"),
            "namespace_options.target_id",
        ),
        "the host's processes": (lambda: setattr(security.namespace_options, "pid", m.NODE), "namespace_options.pid"),
        "the host's network": (
            lambda: setattr(security.namespace_options, "network", m.NODE),
            "namespace_options.network",
        ),
        "page size that climbs": (
            lambda: resources.hugepage_limits.add(page_size="../2MB", limit=1),
            "config.linux.resources.hugepage_limits[0].page_size",
        ),
        "long argument": (lambda: config.args.append("x" * 32 * PAGESIZE), "config.args[0]"),
        "long environment": (
            lambda: config.envs.extend(m.KeyValue(key=str(n), value=b"x" * 100_000) for n in range(63)),
            "command, args and envs",
        ),
        "long annotations": (lambda: config.annotations.update({"a": "x" * 512 * 1024}), "config.annotations"),
        "many mounts": (lambda: [mount(f"/x{n}") for n in range(4097)], "config.mounts"),
    }
    spoil, field = cases[name]
    spoil()
    return config, field


HOSTILE = (
    "long masked path", "deep masked path", "read-only path below a file", "deep container path", "mount in sysfs",
    "mount below a file", "device in procfs", "device below a file", "long log path", "long working directory",
    "working directory that is a file", "no such processors", "no such memory", "climbing masked path",
    "climbing container path", "climbing device", "mount on procfs", "log directory for a log", "no seccomp profile",
    "target without its mode", "the host's processes", "the host's network", "page size that climbs", "long argument",
    "long environment", "long annotations", "many mounts",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_runtime_can_serve_is_the_requests_fault(node: Node, name: str) -> None:
    config, field = hostile(node, name)
    code, words = refuse_container(node, node.run_pod(), config)
    assert (code, field in words) == ("INVALID_ARGUMENT", True), words
