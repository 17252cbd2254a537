"""What is wrong is refused with its field's name, and leaves nothing behind (the fixture looks)."""

from __future__ import annotations

from collections.abc import Callable
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
    }
    spoil, field = cases[name]
    spoil()
    return config, field


HOSTILE = (
    "long masked path", "deep masked path", "read-only path below a file", "deep container path", "mount in sysfs",
    "mount below a file", "device in procfs", "device below a file", "long log path", "long working directory",
    "working directory that is a file", "no such processors", "no such memory",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_runtime_can_serve_is_the_requests_fault(node: Node, name: str) -> None:
    config, field = hostile(node, name)
    code, words = refuse_container(node, node.run_pod(), config)
    assert (code, field in words) == ("INVALID_ARGUMENT", True), words
