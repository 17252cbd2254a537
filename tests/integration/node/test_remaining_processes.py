"""Where a container's PID namespace is its pod's or the host's, its processes do not end with the first one: what is
told EXITED must have none all the same, or it keeps ports and volumes of the next one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stand.cgroups import cgroups_named, processes_in
from tests.stand.node import Node

pytestmark = pytest.mark.root

LISTENS = "nc -l -p 7777 & exec sleep 1000"


def running(container_id: str) -> set[int]:
    return {pid for folder in cgroups_named(container_id, depth=4) for pid in processes_in(folder)}


def begun(node: Node, kind: str) -> tuple[str, str, int]:
    """Pod, container and its first process; another one listens."""
    mode = getattr(node.m, kind)
    config = node.pod_config()
    config.linux.security_context.namespace_options.pid = mode
    pod_id = node.run_pod(config)
    container_id = start(node, pod_id, mode, attempt=0)
    (first,) = (pid for pid in running(container_id) if words(pid)[:1] == [b"sleep"])
    return pod_id, container_id, first


def start(node: Node, pod_id: str, mode: Any, *, attempt: int) -> str:
    asked = node.container_config("sh", "-c", LISTENS)
    asked.metadata.attempt = attempt
    asked.linux.security_context.namespace_options.pid = mode
    container_id = node.create(pod_id, asked)
    node.start(container_id)
    node.wait(lambda: {b"nc", b"sleep"} <= {words(pid)[0] for pid in running(container_id) if words(pid)})
    return container_id


def words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def by_itself(node: Node, pod_id: str, container_id: str, first: int) -> None:
    os.kill(first, signal.SIGKILL)


def by_stop(node: Node, pod_id: str, container_id: str, first: int) -> None:
    node.stop(container_id, timeout=1)


def by_pod(node: Node, pod_id: str, container_id: str, first: int) -> None:
    node.stop_pod(pod_id)


def without_daemon(node: Node, pod_id: str, container_id: str, first: int) -> None:
    node.daemon.kill()
    node.reconnect()
    os.kill(first, signal.SIGKILL)
    node.daemon.start()


@pytest.mark.parametrize("kind", ["POD", "NODE"])
@pytest.mark.parametrize("end", [by_itself, by_stop, by_pod, without_daemon])
def test_none_outlives_its_container(node: Node, kind: str, end: Callable[[Node, str, str, int], None]) -> None:
    pod_id, container_id, first = begun(node, kind)
    end(node, pod_id, container_id, first)
    if end in {by_itself, without_daemon}:
        node.wait_exit(container_id)
    assert running(container_id) == set()
    assert node.status(container_id).exit_code == (143 if end is by_stop else 137)
    if end is not by_pod:
        # The port is free again.
        start(node, pod_id, getattr(node.m, kind), attempt=1)


def test_a_command_ends_with_its_container(node: Node) -> None:
    _, container_id, first = begun(node, "POD")
    request = node.m.ExecSyncRequest(container_id=container_id, cmd=["sleep", "6000"], timeout=60)
    command = node.cri.runtime.ExecSync.future(request, timeout=60)
    node.wait(lambda: [b"sleep", b"6000"] in [words(pid) for pid in running(container_id)])
    os.kill(first, signal.SIGKILL)
    node.wait_exit(container_id)
    assert running(container_id) == set()
    assert command.result().exit_code == 137
