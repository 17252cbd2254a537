"""kill -9 in any state, start again: nothing is lost, nothing is left over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from isulad_py.host import namespaces
from tests.stand.cgroups import cgroups_named
from tests.stand.daemon import PROJECT
from tests.stand.disk import mounts_below
from tests.stand.node import Node, stand_node

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

MOST_WRITES = 60


@pytest.fixture(scope="module")
def shared_node() -> Iterator[Node]:
    with stand_node("rst") as node:
        node.pull()
        yield node


@pytest.fixture
def node(shared_node: Node) -> Iterator[Node]:
    if shared_node.daemon.process is None:
        restart(shared_node)
    yield shared_node
    shared_node.clear_pods()
    assert shared_node.left_of_pods() == []


def restart(node: Node, failpoint: str = "") -> None:
    if node.daemon.process is not None:
        node.daemon.kill()
    node.reconnect()
    node.daemon.start(environment={"ISULAD_FAILPOINT": failpoint})


def mapped_pod(node: Node) -> Any:
    """With users of its own."""
    config = node.pod_config()
    options = config.linux.security_context.namespace_options.userns_options
    for mappings in (options.uids, options.gids):
        mappings.add(container_id=0, host_id=100_000, length=65536)
    return config


def whole_life(node: Node, config: Any = None) -> None:
    """Every kind of record write once."""
    pod_id = node.run_pod(config)
    container_id = node.run_container(pod_id)
    node.exec(container_id, "true")
    limits = node.m.LinuxContainerResources(cpu_shares=512, oom_score_adj=987)
    node.call(
        "UpdateContainerResources", node.m.UpdateContainerResourcesRequest(container_id=container_id, linux=limits)
    )
    node.stop(container_id)
    second = node.run_container(pod_id, "true", name="second")
    node.wait_exit(second)
    node.remove(container_id)
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)


def check_world(node: Node) -> None:
    """What the daemon says is what there is."""
    pods, containers = node.pods(), node.containers()
    ready = {pod.id for pod in pods if pod.state == node.m.SANDBOX_READY}
    for pod_id in ready:
        assert node.pod_status(pod_id).network.ip in node.addresses()
        assert mounts_below(node.state / "isulad" / "pods" / pod_id)
    owed = [pod for pod in pods if pod.id not in ready]
    assert len(ready) <= len(node.addresses()) <= len(ready) + len(owed)
    for container in containers:
        status = node.status(container.id)
        if status.state == node.m.CONTAINER_RUNNING:
            assert node.exec(container.id, "true").exit_code == 0
            shares = [folder / "cpu.shares" for folder in cgroups_named(container.id)]  # of cgroup v1
            told = status.resources.linux
            assert {file.read_text().strip() for file in shares if file.exists()} <= {str(told.cpu_shares or 1024)}
            score = node.exec(container.id, "cat", "/proc/1/oom_score_adj").stdout.strip()
            assert (score == b"987") is (told.oom_score_adj == 987)
        if status.state == node.m.CONTAINER_EXITED:
            assert status.finished_at > 0
            assert status.reason
    roots = [p for p in mounts_below(node.graph) if p.endswith("/merged")]
    assert {Path(p).parent.name for p in roots} <= {c.id for c in containers}


@pytest.mark.parametrize(("moment", "users"), [("before", "the host's"), ("after", "its own")])
def test_death_at_every_record_write(node: Node, moment: str, users: str) -> None:
    for number in range(1, MOST_WRITES):
        restart(node, f"records:{number}:{moment}")
        process = node.daemon.process
        assert process is not None
        try:
            whole_life(node, mapped_pod(node) if users == "its own" else None)
        except grpc.RpcError:
            process.wait(timeout=20)
        else:
            assert number > 10
            restart(node)
            return
        restart(node)
        check_world(node)
        node.clear_pods()
        node.wait(lambda: node.left_of_pods() == [])
    raise AssertionError(f"a pod's life takes more than {MOST_WRITES} writes")


@pytest.mark.parametrize(("moment", "there"), [("before", False), ("after", True)])
def test_an_archive_that_was_being_loaded(node: Node, tmp_path: Path, moment: str, there: bool) -> None:
    archive = str(tmp_path / "image.tar")
    status, saved, err = node.daemon.image("save", node.image, archive)
    assert (status, err) == (0, "")
    identity = saved.split()[0]
    assert node.daemon.image("rm", identity)[0] == 0
    restart(node, f"records:1:{moment}")
    status, out, err = node.daemon.image("load", archive)
    assert (status, out) == (1, "")
    assert "daemon" in err
    restart(node)
    _, listed, _ = node.daemon.image("ls")
    assert (identity in listed) is there
    half_made = [path for path in (node.graph / "overlay/ingest").iterdir() if not (path / "meta.json").exists()]
    assert half_made == []
    status, loaded, err = node.daemon.image("load", archive)
    assert (status, err, loaded) == (0, "", saved)
    node.exec(node.run_container(node.run_pod()), "true")
    node.clear_pods()
    node.pull()


def test_running_containers_run_on_and_their_logs_have_no_gap(node: Node) -> None:
    script = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done"
    container_id = node.run_container(node.run_pod(), "sh", "-c", script)
    before = node.status(container_id)
    log = Path(before.log_path)
    node.wait(lambda: len(log.read_text().splitlines()) > 5)
    node.daemon.kill()
    seen = len(log.read_text().splitlines())
    node.wait(lambda: len(log.read_text().splitlines()) > seen + 10)
    restart(node)
    assert node.status(container_id) == before
    assert node.exec(container_id, "true").exit_code == 0
    node.stop(container_id)
    numbers = [int(line.split()[-1]) for line in log.read_text().splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_pod_with_users_of_its_own_keeps_them(node: Node) -> None:
    pod_id = node.run_pod(mapped_pod(node))
    container_id = node.run_container(pod_id)
    node.daemon.kill()
    restart(node)
    assert node.exec(container_id, "cat", "/proc/1/uid_map").stdout.split() == [b"0", b"100000", b"65536"]
    later = node.run_container(pod_id, name="later")
    assert node.exec(later, "cat", "/proc/1/uid_map").stdout.split() == [b"0", b"100000", b"65536"]
    diff = node.graph / "overlay" / "containers" / later / "diff"
    assert node.exec(later, "touch", "/made").exit_code == 0
    assert (diff / "made").stat().st_uid == 100_000


def test_a_pod_that_has_lost_its_users_is_not_ready(node: Node) -> None:
    pod_id = node.run_pod(mapped_pod(node))
    node.daemon.kill()
    namespaces.release(str(node.state / "isulad" / "pods" / pod_id / "ns" / "user"))
    restart(node)
    assert node.pod_status(pod_id).state == node.m.SANDBOX_NOTREADY


def test_death_while_user_namespaces_are_made(node: Node) -> None:
    """At any moment of eight creations side by side; who holds a namespace meanwhile ends with the daemon."""
    for pause_seconds in (0.0, 0.02, 0.05, 0.1, 0.2):
        m = node.m
        asked = [
            node.cri.runtime.RunPodSandbox.future(m.RunPodSandboxRequest(config=mapped_pod(node))) for _ in range(8)
        ]
        threading.Event().wait(pause_seconds)
        node.daemon.kill()
        for call in asked:
            call.exception()
        restart(node)
        check_world(node)
        node.clear_pods()
        node.wait(lambda: node.left_of_pods() == [])


def test_what_ended_meanwhile_has_its_true_end(node: Node) -> None:
    pod_id = node.run_pod()
    gate = node.mark.root / "gate"
    gate.mkdir(exist_ok=True)
    mount = node.m.Mount(container_path="/gate", host_path=str(gate))
    script = "while [ ! -e /gate/open ]; do sleep 0.05; done; exit 42"
    container_id = node.run_container(pod_id, "sh", "-c", script, mounts=[mount])
    pid = _pid(node, container_id)
    node.daemon.kill()
    (gate / "open").touch()
    node.wait(lambda: not Path(f"/proc/{pid}").exists())
    restart(node)
    status = node.wait_exit(container_id)
    assert (status.exit_code, status.reason) == (42, "Error")
    assert status.started_at <= status.finished_at


def test_a_container_whose_monitor_died_is_not_lost(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    monitor = _told(node, container_id)["monitorPid"]
    os.kill(monitor, 9)
    assert node.exec(container_id, "true").exit_code == 0
    restart(node)
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING
    node.stop(container_id)
    assert node.status(container_id).reason == "ContainerStatusUnknown"


def test_a_second_daemon_refuses_to_start(node: Node) -> None:
    process = node.daemon.process
    assert process is not None
    argv = [sys.executable, "-m", "isulad_py", "--config", str(node.daemon.folder / "daemon.json")]
    second = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 1
    assert str(process.pid) in second.stderr
    node.run_pod()


def test_a_graceful_stop_leaves_containers_running(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    pid = _pid(node, container_id)
    assert node.daemon.stop() == 0
    assert Path(f"/proc/{pid}").exists()
    restart(node)
    assert node.status(container_id).state == node.m.CONTAINER_RUNNING


def _told(node: Node, container_id: str) -> dict[str, int]:
    request = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
    told: dict[str, int] = json.loads(node.call("ContainerStatus", request).info["info"])
    return told


def _pid(node: Node, container_id: str) -> int:
    return _told(node, container_id)["pid"]


def test_a_stop_waits_for_what_is_being_undone(node: Node) -> None:
    request = node.m.RunPodSandboxRequest(config=node.pod_config())
    running = node.cri.runtime.RunPodSandbox.future(request, timeout=30)
    node.wait(lambda: node.addresses() or running.done())
    running.cancel()
    assert node.daemon.stop() == 0
    assert node.left_of_pods() == []
    restart(node)
