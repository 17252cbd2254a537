"""A reboot, in two boots of one disk: what was on record is told truly, and nothing of it is held any more.

`-k before` in the first boot, `-k after` in the second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand.node import Node
from tests.vm.lasting import IMAGE, STATE, boot_id, lasting_node, left_on_disk, note, notes


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with lasting_node() as made:
        yield made


def test_before(node: Node) -> None:
    assert notes() == {}
    node.pull()
    busy = node.run_pod(node.pod_config("busy"))
    shared = node.pod_config("shared")
    shared.linux.security_context.namespace_options.pid = node.m.POD
    paused, stopped = node.run_pod(shared), node.run_pod(node.pod_config("stopped"))
    containers = {
        "running": node.run_container(busy, name="running", labels={"kept": "yes"}),
        "ended": node.run_container(busy, "sh", "-c", "exit 3", name="ended"),
        "created": node.create(busy, node.container_config(name="created")),
        "beside": node.run_container(paused, name="beside"),
    }
    ended = node.wait_exit(containers["ended"])
    node.exec(containers["running"], "sh", "-c", "echo kept > /kept")
    node.stop_pod(stopped)
    assert len(node.addresses()) == 2
    note(
        boot=boot_id(),
        pods={"busy": busy, "paused": paused, "stopped": stopped},
        containers=containers,
        finished_at=ended.finished_at,
        created_at=node.status(containers["running"]).created_at,
    )
    # The power button: the daemon hears nothing any more.
    node.daemon.kill()
    os.sync()


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    found = notes()
    assert found["boot"] != boot_id()
    return found


def test_after_nothing_runs_and_the_state_is_gone(before: dict[str, Any]) -> None:
    assert not STATE.exists()
    names = [Path(f"/proc/{entry.name}/comm") for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not [path for path in names if path.exists() and path.read_text().strip() in {"conmon", "runc"}]


def test_after_pods_are_not_ready(before: dict[str, Any], node: Node) -> None:
    states = {pod.id: pod.state for pod in node.pods()}
    assert states == dict.fromkeys(before["pods"].values(), node.m.SANDBOX_NOTREADY)
    status = node.pod_status(before["pods"]["busy"])
    assert (status.metadata.name, dict(status.labels)) == ("busy", {"app": "busy"})


def test_after_containers_have_ended_and_it_is_said_why(before: dict[str, Any], node: Node) -> None:
    ids = before["containers"]
    for name in ("running", "beside"):
        status = node.status(ids[name])
        assert status.state == node.m.CONTAINER_EXITED
        assert (status.exit_code, status.reason) == (255, "ContainerStatusUnknown")
        assert "restarted" in status.message
        assert 0 < status.created_at <= status.started_at <= status.finished_at
    running = node.status(ids["running"])
    assert (running.created_at, dict(running.labels)) == (before["created_at"], {"kept": "yes"})
    ended = node.status(ids["ended"])
    assert (ended.exit_code, ended.reason, ended.finished_at) == (3, "Error", before["finished_at"])
    created = node.status(ids["created"])
    assert (created.state, created.started_at) == (node.m.CONTAINER_EXITED, 0)
    request = node.m.StartContainerRequest(container_id=ids["created"])
    assert node.fails("StartContainer", request)[0] == "FAILED_PRECONDITION"
    assert node.fails("ExecSync", node.m.ExecSyncRequest(container_id=ids["running"], cmd=["true"]))[0] == (
        "FAILED_PRECONDITION"
    )


def test_after_the_image_is_there_and_new_pods_run(before: dict[str, Any], node: Node) -> None:
    [image] = [each for each in node.call("ListImages", node.m.ListImagesRequest()).images if IMAGE in each.repo_tags]
    assert image.size > 0
    # The same name again, as a kubelet does it: with the next attempt.
    config = node.pod_config("busy", metadata=node.m.PodSandboxMetadata(name="busy", namespace="default", attempt=1))
    container_id = node.run_container(node.run_pod(config), name="running")
    assert node.exec(container_id, "cat", "/etc/hostname").stdout == b"busy\n"
    assert node.exec(container_id, "ls", "/kept").exit_code != 0


def test_after_a_kubelets_cleaning_nothing_is_held(before: dict[str, Any], node: Node) -> None:
    for pod_id in before["pods"].values():
        node.stop_pod(pod_id)
    assert len(node.addresses()) == 1  # of the new pod
    node.clear_pods()
    assert (node.pods(), node.containers(), node.addresses()) == ([], [], [])
    node.wait(lambda: not left_on_disk())
    assert "put aside" not in node.daemon.log.read_text()
