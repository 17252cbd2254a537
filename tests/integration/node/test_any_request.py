"""Any configuration gets an answer from a whole node: in time, never UNKNOWN or INTERNAL, with nothing left behind."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isulad_py.api.runtime import v1 as cri
from tests.any_request import Path, near
from tests.stand.node import Node

pytestmark = pytest.mark.root

SECONDS = 60
ANYTHING = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
HOSTS_OWN = frozenset({"log_directory", "cgroup_parent", "windows"})
"""What would make folders and cgroups outside the stand; and what is refused as a whole."""


def left_alone(path: Path) -> bool:
    return not HOSTS_OWN.isdisjoint(path)


def answer(node: Node, method: str, message: Any) -> Any:
    """None where it was refused, as it should be."""
    service = node.cri.runtime
    kind = getattr(node.m, type(message).__name__)
    try:
        return getattr(service, method)(kind.FromString(bytes(message)), timeout=SECONDS)
    except grpc.RpcError as error:
        code, words = error.code(), error.details() or ""
        assert code not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED}, words
        assert words
        return None


def pod_config(node: Node) -> cri.PodSandboxConfig:
    return cri.PodSandboxConfig().parse(node.pod_config("any").SerializeToString())


def test_any_pod(node: Node) -> None:
    @settings(ANYTHING, max_examples=60)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(near(lambda: cri.RunPodSandboxRequest(config=pod_config(node)), but=left_alone))
        made = answer(node, "RunPodSandbox", message)
        if made is not None:
            node.stop_pod(made.pod_sandbox_id)
            node.remove_pod(made.pod_sandbox_id)
        assert node.left_of_pods() == []

    check()


def test_any_container(node: Node) -> None:
    config = node.pod_config("any")
    config.linux.security_context.privileged = True
    pod_id = node.run_pod(config)

    def request() -> cri.CreateContainerRequest:
        asked = cri.ContainerConfig().parse(node.container_config("true").SerializeToString())
        return cri.CreateContainerRequest(pod_sandbox_id=pod_id, config=asked)

    def but(path: Path) -> bool:
        return left_alone(path) or path[0] == "sandbox_config"

    def within(message: cri.CreateContainerRequest) -> cri.CreateContainerRequest:
        """Host paths that are missing are made: in the stand."""
        for mount in message.config.mounts:
            if mount.host_path.startswith("/"):
                mount.host_path = f"{node.mark.root}/any{mount.host_path}"
        return message

    @settings(ANYTHING, max_examples=100)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = answer(node, "CreateContainer", within(data.draw(near(request, but=but))))
        if made is not None:
            answer(node, "StartContainer", cri.StartContainerRequest(container_id=made.container_id))
            node.remove(made.container_id)
        assert node.containers() == []

    check()


def test_any_update(node: Node) -> None:
    container_id = node.run_container(node.run_pod())

    def request() -> cri.UpdateContainerResourcesRequest:
        limits = cri.LinuxContainerResources(cpu_shares=100)
        return cri.UpdateContainerResourcesRequest(container_id=container_id, linux=limits)

    @settings(ANYTHING, max_examples=60)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        answer(node, "UpdateContainerResources", data.draw(near(request, but=left_alone)))
        assert node.status(container_id).state == node.m.CONTAINER_RUNNING

    check()
