"""What is asked for stands in the files of cgroup v2, an update changes all of it or nothing, and what the files say is
told in statistics and metrics. With whatever driver and runtime the stand has."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stand.node import Node
from tests.stand.variant import RUNTIME, SYSTEMD
from tests.vm.world import cgroup_of

MIB = 1 << 20
ASKED: dict[str, Any] = {
    "cpu_shares": 204,
    "cpu_quota": 50_000,
    "cpu_period": 100_000,
    "cpuset_cpus": "0",
    "cpuset_mems": "0",
    "memory_limit_in_bytes": 64 * MIB,
    "memory_swap_limit_in_bytes": 96 * MIB,
    "oom_score_adj": 300,
    "unified": {"memory.high": str(60 * MIB), "pids.max": "50", "memory.oom.group": "1"},
}
STANDS = {
    "cpu.weight": "8",  # as runc and crun convert shares
    "cpu.max": "50000 100000",
    "cpuset.cpus": "0",
    "cpuset.mems": "0",
    "memory.max": str(64 * MIB),
    "memory.swap.max": str(32 * MIB),
    "memory.high": str(60 * MIB),
    "memory.oom.group": "1",
    "pids.max": "50",
}


def run(node: Node, *command: str, **limits: Any) -> str:
    config = node.container_config(*command)
    config.linux.resources.MergeFrom(node.m.LinuxContainerResources(**limits))
    container_id = node.create(node.run_pod(), config)
    node.start(container_id)
    return container_id


def figures(folder: Path, names: Any = STANDS) -> dict[str, str]:
    return {name: (folder / name).read_text().strip() for name in names}


def update(node: Node, container_id: str, **limits: Any) -> Any:
    linux = node.m.LinuxContainerResources(**limits)
    return node.m.UpdateContainerResourcesRequest(container_id=container_id, linux=linux)


def reloaded(expected: dict[str, str]) -> dict[str, str]:
    """What is left of it after systemd has written down again what it believes its units' limits to be: all that a
    scope has a property for."""
    if not SYSTEMD or RUNTIME == "crun":  # crun 1.8 tells systemd of the CPU's weight alone (docs/compatibility.md)
        return expected
    subprocess.run(["systemctl", "daemon-reload"], check=True, timeout=120)
    return {name: value for name, value in expected.items() if name != "memory.oom.group"}


def test_every_limit_stands_in_its_file(node: Node) -> None:
    container_id = run(node, **ASKED)
    folder = cgroup_of(node, container_id)
    assert figures(folder) == STANDS
    kept = reloaded(STANDS)
    assert figures(folder, kept) == kept
    allowed = node.exec(container_id, "grep", "Cpus_allowed_list", "/proc/self/status").stdout.decode()
    assert allowed.split()[1] == "0"
    assert node.exec(container_id, "cat", "/sys/fs/cgroup/memory.max").stdout.decode().strip() == str(64 * MIB)


def test_huge_pages_are_limited(node: Node) -> None:
    if not Path("/sys/kernel/mm/hugepages/hugepages-2048kB").exists():
        pytest.skip("this kernel has no huge pages")
    limits = [node.m.HugepageLimit(page_size="2MB", limit=4 * MIB), node.m.HugepageLimit(page_size="1GB", limit=0)]
    if not Path("/sys/kernel/mm/hugepages/hugepages-1048576kB").exists():
        limits.pop()
    folder = cgroup_of(node, run(node, hugepage_limits=limits))
    assert (folder / "hugetlb.2MB.max").read_text().strip() == str(4 * MIB)


def test_an_update_changes_all_and_status_tells_it(node: Node) -> None:
    container_id = run(node, **ASKED)
    folder = cgroup_of(node, container_id)
    wanted: dict[str, Any] = {
        "cpu_shares": 1024,
        "cpu_quota": 150_000,
        "cpu_period": 100_000,
        "cpuset_cpus": f"0-{(os.cpu_count() or 1) - 1}",
        "memory_limit_in_bytes": 128 * MIB,
        "memory_swap_limit_in_bytes": 128 * MIB,
        "oom_score_adj": 400,
        "unified": {"memory.high": str(120 * MIB), "pids.max": "60"},
    }
    node.call("UpdateContainerResources", update(node, container_id, **wanted))
    expected = {
        **STANDS,
        "cpu.weight": "39",
        "cpu.max": "150000 100000",
        "cpuset.cpus": wanted["cpuset_cpus"],
        "memory.max": str(128 * MIB),
        "memory.swap.max": "0",
        "memory.high": str(120 * MIB),
        "pids.max": "60",
    }
    assert figures(folder) == expected
    kept = reloaded(expected)
    assert figures(folder, kept) == kept
    told = node.status(container_id).resources.linux
    for name in ("cpu_shares", "cpu_quota", "cpuset_cpus", "memory_limit_in_bytes", "oom_score_adj"):
        assert getattr(told, name) == wanted[name]
    assert dict(told.unified) == {**ASKED["unified"], **wanted["unified"]}


@pytest.mark.parametrize(
    ("limits", "code", "word"),
    [
        ({"cpu_shares": 1024, "cpuset_cpus": "4096-4097"}, "INVALID_ARGUMENT", "cpuset_cpus"),
        ({"cpu_shares": 1024, "memory_limit_in_bytes": 4096}, "FAILED_PRECONDITION", "memory_limit_in_bytes"),
        ({"cpu_shares": 1024, "unified": {"memory.high": "much"}}, "INVALID_ARGUMENT", "memory.high"),
        ({"cpu_shares": 1024, "unified": {"no.such": "1"}}, "INVALID_ARGUMENT", "no.such"),
        ({"cpu_quota": 200_000, "cpu_period": 999}, "INVALID_ARGUMENT", "cpu_period"),
    ],
    ids=str,
)
def test_an_update_that_fails_changes_nothing(node: Node, limits: dict[str, Any], code: str, word: str) -> None:
    container_id = run(node, "sh", "-c", "x=$(dd if=/dev/zero bs=1M count=2 | tr '\\0' x); sleep 1000; :", **ASKED)
    folder = cgroup_of(node, container_id)
    node.wait(lambda: int((folder / "memory.current").read_text()) > 2 * MIB)
    before = node.status(container_id).resources
    answer = node.fails("UpdateContainerResources", update(node, container_id, **limits))
    assert (answer[0], word in answer[1]) == (code, True), answer
    assert figures(folder) == STANDS
    kept = reloaded(STANDS)
    assert figures(folder, kept) == kept
    assert node.status(container_id).resources == before


def test_no_swap_stays_none(node: Node) -> None:
    container_id = run(node, memory_limit_in_bytes=64 * MIB, memory_swap_limit_in_bytes=64 * MIB)
    folder = cgroup_of(node, container_id)
    expected = {"memory.max": str(64 * MIB), "memory.swap.max": "0"}
    assert figures(folder, expected) == expected
    kept = reloaded(expected)
    assert figures(folder, kept) == kept
    node.call("UpdateContainerResources", update(node, container_id, memory_limit_in_bytes=128 * MIB))
    expected["memory.max"] = str(128 * MIB)
    assert figures(folder, expected) == expected
    kept = reloaded(expected)
    assert figures(folder, kept) == kept


@pytest.mark.parametrize("unified", [{"no.such": "1"}, {"memory.high": "much"}], ids=str)
def test_a_file_that_the_kernel_does_not_have_is_refused_by_name(node: Node, unified: dict[str, str]) -> None:
    config = node.container_config()
    config.linux.resources.unified.update(unified)
    request = node.m.CreateContainerRequest(pod_sandbox_id=node.run_pod(), config=config)
    code, words = node.fails("CreateContainer", request)
    assert code == "INVALID_ARGUMENT", words
    assert next(iter(unified)) in words
    assert node.containers() == []


def test_a_group_dies_of_memory_together(node: Node) -> None:
    """As kubelets ask for it on v2: the first process, which would have lived on, goes with its child."""
    eat = "dd if=/dev/zero of=/dev/null bs=64M count=1; sleep 1000"
    limits = {"memory_limit_in_bytes": 16 * MIB, "memory_swap_limit_in_bytes": 16 * MIB}
    container_id = run(node, "sh", "-c", eat, **limits, unified={"memory.oom.group": "1"})
    status = node.wait_exit(container_id)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


def test_too_many_processes_are_refused_by_the_kernel(node: Node) -> None:
    """The runtime's own threads count before the command's: a smaller limit may end the exec before it begins."""
    container_id = run(node, unified={"pids.max": "30"})
    forks = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; wait; echo all"
    answer = node.exec(container_id, "sh", "-c", forks)
    assert b"fork" in answer.stderr


def test_statistics_are_those_of_the_files(node: Node) -> None:
    work = "x=$(dd if=/dev/zero bs=1M count=2 | tr '\\0' x); i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"
    script = f"{work}; sleep 1000; :"  # the sleep is not the last: the shell would become it, and x be gone
    container_id = run(node, "sh", "-c", script, **ASKED)
    folder = cgroup_of(node, container_id)
    node.wait(lambda: int((folder / "memory.current").read_text()) > 2 * MIB and _sleeps(folder))
    stats = node.call("ContainerStats", node.m.ContainerStatsRequest(container_id=container_id)).stats
    events = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    assert 0 < stats.cpu.usage_core_nano_seconds.value <= int(events["usage_usec"]) * 1000
    assert 2 * MIB < stats.memory.rss_bytes.value <= stats.memory.usage_bytes.value
    assert stats.memory.working_set_bytes.value <= stats.memory.usage_bytes.value
    # Up to the lowest limit: what can be had before the kernel reclaims or kills.
    assert stats.memory.available_bytes.value == 64 * MIB - stats.memory.working_set_bytes.value
    assert stats.memory.page_faults.value > 0
    assert stats.swap.swap_usage_bytes.value == 0
    assert stats.swap.swap_available_bytes.value == 32 * MIB
    if (folder / "cpu.pressure").exists():
        for psi in (stats.cpu.psi, stats.memory.psi, stats.io.psi):
            assert psi.HasField("Some")
            assert psi.HasField("Full")
        totals = (folder / "cpu.pressure").read_text().splitlines()[0].rpartition("=")[2]
        assert stats.cpu.psi.Some.Total <= int(totals) * 1000


def _sleeps(folder: Path) -> bool:
    for pid in (folder / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):  # it ends just now
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):
                return True
    return False


def test_the_pods_statistics_hold_its_containers(node: Node) -> None:
    pod_id = node.run_pod()
    ids = [node.run_container(pod_id, name=name) for name in ("one", "two")]
    stats = node.call("PodSandboxStats", node.m.PodSandboxStatsRequest(pod_sandbox_id=pod_id)).stats
    assert sorted(each.attributes.id for each in stats.linux.containers) == sorted(ids)
    assert stats.linux.process.process_count.value >= 2
    assert stats.linux.memory.usage_bytes.value > 0
    assert stats.linux.cpu.usage_core_nano_seconds.value > 0
    assert stats.linux.network.default_interface.name == "eth0"
    listed = node.call("ListPodSandboxStats", node.m.ListPodSandboxStatsRequest()).stats
    assert [each.attributes.id for each in listed] == [pod_id]


def test_metrics_are_those_that_were_announced(node: Node) -> None:
    pod_id = node.run_pod()
    node.run_container(pod_id)
    described = node.call("ListMetricDescriptors", node.m.ListMetricDescriptorsRequest()).descriptors
    names = {each.name for each in described}
    [pod] = node.call("ListPodSandboxMetrics", node.m.ListPodSandboxMetricsRequest()).pod_metrics
    assert pod.pod_sandbox_id == pod_id
    [container] = pod.container_metrics
    found = {metric.name for metric in pod.metrics}
    assert found <= names
    assert "container_network_receive_bytes_total" in found
    found = {metric.name for metric in container.metrics}
    assert found <= names
    assert {
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_threads",
        "container_processes",
        "container_oom_events_total",
        "container_pressure_cpu_waiting_seconds_total",
    } <= found
