"""Pods as slices and containers as scopes, where systemd makes the cgroups; nothing of them stays behind."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand.node import Node
from tests.stand.variant import SYSTEMD
from tests.vm.world import ROOT, cgroup_of, cgroup_path, process_of, units

MIB = 1 << 20
QOS = "/kubepods.slice/kubepods-besteffort.slice"

pytestmark = pytest.mark.skipif(not SYSTEMD, reason="of systemd's driver only")


@pytest.fixture
def pod_slice() -> Iterator[str]:
    """A pod's slice as the kubelet makes it, and keeps it."""
    name = "kubepods-besteffort-pod0a1b2c3d_0000_4444_8888_0123456789ab.slice"
    subprocess.run(["systemctl", "start", name], check=True, timeout=60)
    yield name
    assert f"{name}" in units("kubepods*")
    subprocess.run(["systemctl", "stop", "kubepods.slice"], check=True, timeout=60)


@pytest.mark.parametrize("form", ["{name}", QOS + "/{name}"], ids=["name", "path"])
def test_a_container_lives_in_the_kubelets_slice(node: Node, pod_slice: str, form: str) -> None:
    config = node.pod_config("best")
    config.linux.cgroup_parent = form.format(name=pod_slice)
    pod_id = node.run_pod(config)
    container_id = node.run_container(pod_id)
    scope = f"isulad-{container_id}.scope"
    assert cgroup_path(process_of(node, container_id)) == f"{QOS}/{pod_slice}/{scope}"
    assert units(f"isulad-{container_id}*") == [scope]
    stats = node.call("PodSandboxStats", node.m.PodSandboxStatsRequest(pod_sandbox_id=pod_id)).stats
    assert stats.linux.memory.usage_bytes.value > 0
    node.stop(container_id)
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)
    assert units("isulad-*") == []
    folder = ROOT / QOS.lstrip("/") / pod_slice
    assert [entry for entry in folder.iterdir() if entry.is_dir()] == []


def test_a_pod_of_its_own_slice_takes_it_along(node: Node) -> None:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    slice_ = cgroup_path(process_of(node, container_id)).split("/")[-2]
    assert pod_id[:12] in slice_
    assert slice_ in units("*.slice")
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)
    assert slice_ not in units("*.slice")
    assert units(f"isulad-{container_id}*") == []


@pytest.mark.parametrize("ending", ["by itself", "for memory", "by a signal", "with an error", "before it began"])
def test_no_unit_is_left_however_it_ended(node: Node, ending: str) -> None:
    """A failed unit would stay until somebody resets it."""
    config = node.container_config("sh", "-c", "exit 0")
    if ending == "for memory":
        config = node.container_config("dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1")
        limits = config.linux.resources
        limits.memory_limit_in_bytes = limits.memory_swap_limit_in_bytes = 16 * MIB
    elif ending == "with an error":
        config = node.container_config("sh", "-c", "exit 3")
    elif ending == "by a signal":
        config = node.container_config()
    container_id = node.create(node.run_pod(), config)
    if ending == "before it began":
        Path(cgroup_of(node, container_id), "cgroup.kill").write_text("1")
    else:
        node.start(container_id)
    if ending == "by a signal":
        Path(cgroup_of(node, container_id), "cgroup.kill").write_text("1")
    status = node.wait_exit(container_id)
    assert (status.reason == "OOMKilled") == (ending == "for memory")
    node.remove(container_id)
    assert units(f"isulad-{container_id}*") == []


def test_a_kill_reaches_the_whole_scope(node: Node) -> None:
    """Also what has made itself a session of its own and ignores every signal that can be ignored."""
    config = node.pod_config("shared")
    config.linux.security_context.namespace_options.pid = node.m.POD
    stubborn = "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; while true; do sleep 1; done' &); sleep 1000"
    asked = node.container_config("sh", "-c", stubborn)
    asked.linux.security_context.namespace_options.pid = node.m.POD
    container_id = node.create(node.run_pod(config), asked)
    node.start(container_id)
    folder = cgroup_of(node, container_id)
    node.wait(lambda: len((folder / "cgroup.procs").read_text().split()) >= 3)
    pids = (folder / "cgroup.procs").read_text().split()
    node.stop(container_id, timeout=1)
    assert node.status(container_id).exit_code == 128 + signal.SIGKILL
    node.wait(lambda: not any(Path(f"/proc/{pid}/root").exists() for pid in pids))
    node.remove(container_id)
    assert not folder.exists()


def test_a_pause_container_has_a_scope_beside(node: Node) -> None:
    config = node.pod_config("paused")
    config.linux.security_context.namespace_options.pid = node.m.POD
    pod_id = node.run_pod(config)
    assert units(f"isulad-{pod_id}*") == [f"isulad-{pod_id}.scope"]
    node.stop_pod(pod_id)
    node.remove_pod(pod_id)
    assert units("isulad-*") == []


def test_a_path_is_refused_by_name(node: Node) -> None:
    config: Any = node.pod_config("wrong")
    config.linux.cgroup_parent = "/kubepods/besteffort/pod1"
    code, words = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=config))
    assert code == "INVALID_ARGUMENT"
    assert "linux.cgroup_parent" in words


def test_scopes_outlive_a_daemon_and_end_with_the_next(node: Node) -> None:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    process = process_of(node, container_id)
    node.daemon.kill()
    node.reconnect()
    assert cgroup_path(process).endswith(f"isulad-{container_id}.scope")
    node.daemon.start()
    assert process_of(node, container_id) == process
    node.remove_pod(pod_id)
    assert units("isulad-*") == []
