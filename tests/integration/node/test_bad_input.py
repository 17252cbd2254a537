"""What is wrong is refused with its field's name, and leaves nothing behind (the fixture looks)."""

from __future__ import annotations

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
    missing = m.Mount(container_path="/x", host_path="/no/such/path")
    cases: list[tuple[Any, str, str]] = [
        (node.container_config(mounts=[missing]), "INVALID_ARGUMENT", "mounts[0].host_path"),
        (
            node.container_config(mounts=[m.Mount(container_path="x", host_path="/tmp")]),
            "INVALID_ARGUMENT",
            "container_path",
        ),
        (node.container_config(envs=[m.KeyValue(key="A=B", value=b"1")]), "INVALID_ARGUMENT", "envs"),
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
