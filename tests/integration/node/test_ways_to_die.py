"""ContainerStatus says how a container ended, in the kubelet's words, for each way there is; a restart of the daemon
changes none of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import pidfd
from tests.stand.node import Node

pytestmark = pytest.mark.root

MIB = 1 << 20
DIES_OF_MEMORY = ("dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1")


def limited(node: Node, memory: int = 16 * MIB) -> dict[str, Any]:
    resources = node.m.LinuxContainerResources(memory_limit_in_bytes=memory, memory_swap_limit_in_bytes=memory)
    return {"linux": node.m.LinuxContainerConfig(resources=resources)}


def told(status: Any) -> tuple[int, str]:
    return status.exit_code, status.reason


def check(node: Node, status: Any) -> None:
    """What holds for every end."""
    assert status.state == node.m.CONTAINER_EXITED
    assert 0 < status.created_at <= status.started_at <= status.finished_at <= time.time_ns()
    assert status.image.image
    assert status.image_ref
    assert status.log_path


def processes(node: Node, container_id: str) -> tuple[int, int]:
    """The container's first process and its monitor."""
    request = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
    info = json.loads(node.call("ContainerStatus", request).info["info"])
    return info["pid"], info["monitorPid"]


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("exit 0", 0, "Completed"),
        ("exit 1", 1, "Error"),
        ("exit 255", 255, "Error"),
    ],
)
def test_by_itself(node: Node, script: str, code: int, reason: str) -> None:
    status = node.wait_exit(node.run_container(node.run_pod(), "sh", "-c", script))
    check(node, status)
    assert told(status) == (code, reason)
    assert status.message == ""


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("SEGV", 139), ("KILL", 137)])
def test_by_a_signal_of_its_own(node: Node, name: str, code: int) -> None:
    """In a shared PID namespace: the first process of one would not even notice (pid_namespaces(7))."""
    config = node.pod_config("shared")
    config.linux.security_context.namespace_options.pid = node.m.POD
    asked = node.container_config("sh", "-c", f"kill -{name} $$; sleep 1000")
    asked.linux.security_context.namespace_options.pid = node.m.POD
    container_id = node.create(node.run_pod(config), asked)
    node.start(container_id)
    status = node.wait_exit(container_id)
    check(node, status)
    assert told(status) == (code, "Error")


def test_by_a_signal_from_outside(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    pid, _ = processes(node, container_id)
    os.kill(pid, signal.SIGKILL)
    status = node.wait_exit(container_id)
    check(node, status)
    assert told(status) == (137, "Error")


def test_of_memory(node: Node) -> None:
    status = node.wait_exit(node.run_container(node.run_pod(), *DIES_OF_MEMORY, **limited(node)))
    check(node, status)
    assert told(status) == (137, "OOMKilled")


def test_after_a_child_died_of_memory(node: Node) -> None:
    """The kernel took a child; what the first process makes of it counts, and that it was for memory."""
    script = f"{' '.join(DIES_OF_MEMORY)}; exit 3"
    status = node.wait_exit(node.run_container(node.run_pod(), "sh", "-c", script, **limited(node)))
    check(node, status)
    assert told(status) == (3, "OOMKilled")


def test_though_a_child_died_of_memory_the_program_succeeded(node: Node) -> None:
    """containerd and CRI-O tell of it with any exit code.

    The program lives on for a second: systemd removes a scope with its last process, and the counter with it.
    """
    script = f"{' '.join(DIES_OF_MEMORY)}; sleep 1; exit 0"
    status = node.wait_exit(node.run_container(node.run_pod(), "sh", "-c", script, **limited(node)))
    assert told(status) == (0, "OOMKilled")


def test_before_it_began(node: Node) -> None:
    """A program that vanished between creation and start: the container stays, and says why."""
    pod_id = node.run_pod()
    container_id = node.create(pod_id)
    pid, _ = processes(node, container_id)
    os.kill(pid, signal.SIGKILL)
    node.wait(lambda: node.status(container_id).state == node.m.CONTAINER_EXITED)
    status = node.status(container_id)
    assert (status.started_at, told(status)) == (0, (137, "Error"))
    code, words = node.fails("StartContainer", node.m.StartContainerRequest(container_id=container_id))
    assert code == "FAILED_PRECONDITION"
    assert "exited" in words


@pytest.mark.parametrize("command", ["no-such-program", "/etc", "/etc/passwd"])
def test_of_a_command_that_cannot_be_run(node: Node, command: str) -> None:
    """Whether the runtime notices it when the container is made or started, the request is refused by name."""
    pod_id = node.run_pod()
    request = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=node.container_config(command))
    code, words = node.fails("CreateContainer", request)
    assert (code, command in words) == ("INVALID_ARGUMENT", True), words
    assert node.containers() == []


def test_while_the_daemon_was_away(node: Node) -> None:
    pod_id = node.run_pod()
    ended = node.run_container(pod_id, "sh", "-c", "mkfifo /end; read line < /end; exit 7", name="ended")
    starved = node.create(pod_id, node.container_config("sh", "-c", "sleep 0.3; " + " ".join(DIES_OF_MEMORY),
                                                        name="starved", **limited(node)))  # fmt: skip
    lasting = node.run_container(pod_id, name="lasting")
    pid, monitor = processes(node, ended)
    fifo = Path(f"/proc/{pid}/root/end")
    node.wait(fifo.is_fifo)
    node.start(starved)
    before = node.status(lasting)
    node.daemon.kill()
    node.reconnect()
    at = time.time_ns()
    fifo.write_text("now\n")
    node.wait(lambda: not Path(f"/proc/{monitor}").exists())
    back = time.time_ns()
    node.daemon.start()
    first, second = node.wait_exit(ended), node.wait_exit(starved)
    for status in (first, second):
        check(node, status)
    assert told(first) == (7, "Error")
    assert told(second) == (137, "OOMKilled")
    # When it ended, not when the daemon learnt of it; files are dated by the kernel's coarse clock.
    assert at - 20_000_000 <= first.finished_at <= back
    assert node.status(lasting) == before


def test_without_a_monitor(node: Node) -> None:
    """Nobody heard the exit code: it is unknown, and that is said."""
    container_id = node.run_container(node.run_pod(), "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    _, monitor = processes(node, container_id)
    os.kill(monitor, signal.SIGKILL)
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING
    node.stop(container_id, timeout=10)
    status = node.wait_exit(container_id)
    check(node, status)
    assert told(status) == (255, "ContainerStatusUnknown")
    assert "monitor" in status.message


def test_together_with_its_monitor(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    pid, monitor = processes(node, container_id)
    os.kill(monitor, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    status = node.wait_exit(container_id)
    check(node, status)
    assert told(status) == (255, "ContainerStatusUnknown")


def test_with_its_pod(node: Node) -> None:
    pod_id = node.run_pod()
    running = node.run_container(pod_id, name="running")
    waiting = node.create(pod_id, node.container_config(name="waiting"))
    node.stop_pod(pod_id)
    status = node.status(running)
    check(node, status)
    assert told(status) == (137, "Error")
    never = node.status(waiting)
    assert (never.state, never.started_at, told(never)) == (node.m.CONTAINER_EXITED, 0, (137, "Error"))


def test_stopped_in_time_and_not_in_time(node: Node) -> None:
    pod_id = node.run_pod()
    polite = node.run_container(pod_id, "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done", name="polite")
    stubborn = node.run_container(pod_id, "sh", "-c", "trap '' TERM; while :; do sleep 1; done", name="stubborn")
    node.stop(polite, timeout=10)
    node.stop(stubborn, timeout=1)
    assert told(node.status(polite)) == (0, "Completed")
    assert told(node.status(stubborn)) == (137, "Error")


def test_the_status_outlives_the_daemon(node: Node) -> None:
    pod_id = node.run_pod()
    config = node.container_config("sh", "-c", "exit 9", **limited(node))
    config.stop_signal = node.m.SIGNAL_SIGUSR1
    container_id = node.create(pod_id, config)
    node.start(container_id)
    before = node.wait_exit(container_id)
    node.daemon.kill()
    node.reconnect()
    node.daemon.start()
    assert node.status(container_id) == before
    assert before.stop_signal == node.m.SIGNAL_SIGUSR1
    assert before.resources.linux.memory_limit_in_bytes == 16 * MIB


def test_stopped_without_a_state_directory(node: Node) -> None:
    """Somebody has cleared it within one boot, while the container ran."""
    pod_id = node.run_pod()
    stopped, removed = (node.run_container(pod_id, name=name) for name in ("stopped", "removed"))
    first, second = processes(node, stopped), processes(node, removed)
    for container_id in (stopped, removed):
        shutil.rmtree(node.state / "isulad/containers" / container_id)
    node.stop(stopped, timeout=1)
    assert told(node.status(stopped)) == (255, "ContainerStatusUnknown")
    node.remove(removed)
    assert not [pid for pid in (first[0], *second) if pidfd.start_time(pid)]
