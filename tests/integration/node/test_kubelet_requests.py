"""What kubelets really send, and what they insist on in the answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from isulad_py.host.facts import read_facts
from tests.cri_client import connect
from tests.stand.cgroups import cgroups_named, make_cgroup, processes_in, remove_cgroup
from tests.stand.mark import run
from tests.stand.node import Node
from tests.stand.variant import SYSTEMD

pytestmark = pytest.mark.root

MIB = 1 << 20
MASKED = ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"]
READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


@pytest.fixture
def pod_cgroup(node: Node) -> Iterator[str]:
    """A pod's cgroup as the kubelet makes it, in every v1 hierarchy; it is the kubelet's to remove."""
    name = f"{node.mark.word}-kubepods"
    if SYSTEMD:
        yield f"{name}-podone.slice"
        run(["systemctl", "stop", f"{name}.slice"])
        return
    make_cgroup(f"/{name}")
    yield f"/{name}/pod-one"
    for folder in cgroups_named(name, depth=1):
        assert remove_cgroup(folder)


def kubelet_pod(node: Node, cgroup: str, attempt: int = 0) -> Any:
    m = node.m
    config = node.pod_config(
        "static",
        metadata=m.PodSandboxMetadata(name="static", namespace="kube-system", uid="a1", attempt=attempt),
        dns_config=m.DNSConfig(servers=["10.0.0.10"], searches=["svc.cluster.local"], options=["ndots:5"]),
        port_mappings=[m.PortMapping(container_port=80)],
        labels={"io.kubernetes.pod.name": "static", "io.kubernetes.pod.uid": "a1"},
        annotations={"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "0123456789"},
    )
    config.linux.cgroup_parent = cgroup
    config.linux.overhead.SetInParent()
    config.linux.resources.cpu_shares = 2
    config.linux.security_context.seccomp.SetInParent()
    return config


def kubelet_container(node: Node, image_id: str, *command: str, attempt: int = 0) -> Any:
    """Burstable, as a kubelet of 1.36 sends it."""
    m = node.m
    folder = node.mark.root / "kubelet"
    folder.mkdir(exist_ok=True)
    for name in ("etc-hosts", "termination-log"):
        (folder / name).write_text(f"{name} of the kubelet\n")
    config = node.container_config(
        *command,
        name="app",
        metadata=m.ContainerMetadata(name="app", attempt=attempt),
        image=m.ImageSpec(image=image_id, user_specified_image=node.image),
        log_path=f"app/{attempt}.log",
        mounts=[
            m.Mount(container_path="/etc/hosts", host_path=str(folder / "etc-hosts")),
            m.Mount(container_path="/dev/termination-log", host_path=str(folder / "termination-log")),
        ],
        labels={"io.kubernetes.container.name": "app", "io.kubernetes.pod.uid": "a1"},
        annotations={"io.kubernetes.container.hash": "beef", "io.kubernetes.container.restartCount": str(attempt)},
    )
    resources = config.linux.resources
    resources.cpu_shares, resources.cpu_period, resources.cpu_quota = 102, 100000, 20000
    resources.memory_limit_in_bytes = resources.memory_swap_limit_in_bytes = 64 * MIB
    resources.oom_score_adj = 987
    # One for each page size of the host, also where nothing counts them.
    for size in ("2MB", "1GB", "64KB"):
        resources.hugepage_limits.add(page_size=size, limit=0)
    security = config.linux.security_context
    security.namespace_options.pid = m.CONTAINER
    security.run_as_user.SetInParent()
    security.seccomp.SetInParent()
    security.masked_paths.extend(MASKED)
    security.readonly_paths.extend(READONLY)
    return config


def image_id(node: Node) -> str:
    spec = node.m.ImageSpec(image=node.image)
    return str(node.call("ImageStatus", node.m.ImageStatusRequest(image=spec)).image.id)


def test_a_static_pods_life(node: Node, pod_cgroup: str) -> None:
    m = node.m
    if SYSTEMD:
        run(["systemctl", "start", pod_cgroup])
    else:
        make_cgroup(pod_cgroup)
    config = kubelet_pod(node, pod_cgroup)
    pod_id = node.run_pod(config)
    image = image_id(node)
    asked = kubelet_container(node, image, "sh", "-c", "echo out; exec sleep 1000")
    container_id = node.create(pod_id, asked, config)
    node.start(container_id)
    status = node.status(container_id)
    assert (status.image.image, status.image.user_specified_image) == (node.image, node.image)
    assert status.image_id == image
    assert status.image_ref
    assert (dict(status.labels), dict(status.annotations)) == (dict(asked.labels), dict(asked.annotations))
    assert status.log_path == str(Path(config.log_directory, "app/0.log"))
    assert [mount.container_path for mount in status.mounts] == ["/etc/hosts", "/dev/termination-log"]
    assert status.resources.linux.memory_limit_in_bytes == 64 * MIB
    assert status.user.linux.uid == 0
    [listed] = node.containers()
    assert (listed.image.image, listed.image_ref, listed.pod_sandbox_id) == (image, status.image_ref, pod_id)

    pid = _pid(node, container_id)
    assert any(pid in processes_in(folder) for folder in cgroups_named(pod_cgroup.rpartition("/")[2], depth=3))
    assert node.exec(container_id, "cat", "/etc/hosts").stdout == b"etc-hosts of the kubelet\n"
    node.exec(container_id, "sh", "-c", "echo why > /dev/termination-log")
    assert (node.mark.root / "kubelet/termination-log").read_text() == "why\n"
    assert node.exec(container_id, "sh", "-c", "echo 1 > /proc/sys/vm/drop_caches").exit_code != 0
    assert node.exec(container_id, "cat", "/proc/kcore").stdout == b""
    assert b"Seccomp:\t2" in node.exec(container_id, "cat", "/proc/self/status").stdout

    for _ in range(2):
        node.stop(container_id, timeout=2)
    for _ in range(3):
        node.stop_pod(pod_id)
    for _ in range(2):
        node.remove(container_id)
        node.remove_pod(pod_id)
    # The kubelet's own: no process and no cgroup of ours is left in it, and it is still there.
    folders = cgroups_named(pod_cgroup.rpartition("/")[2], depth=3)
    assert folders
    assert [path for folder in folders for path in folder.iterdir() if path.is_dir()] == []
    assert {m.SANDBOX_READY} & {pod.state for pod in node.pods()} == set()


def _pid(node: Node, container_id: str) -> int:
    request = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
    return int(json.loads(node.call("ContainerStatus", request).info["info"])["pid"])


@pytest.mark.parametrize("score", [-997, 1000, 2])
def test_an_oom_score_is_as_low_as_this_daemon_may_give(node: Node, score: int) -> None:
    facts = read_facts()
    config = node.container_config()
    config.linux.resources.oom_score_adj = score
    container_id = node.create(node.run_pod(), config)
    node.start(container_id)
    told = int(Path(f"/proc/{_pid(node, container_id)}/oom_score_adj").read_text())
    assert told == (score if facts.can_lower_oom_score else max(score, facts.oom_score_adj))
    # The status tells what was asked for.
    assert node.status(container_id).resources.linux.oom_score_adj == score


def test_a_restart_is_a_new_container_with_a_new_log(node: Node) -> None:
    m = node.m
    config = node.pod_config("again")
    pod_id = node.run_pod(config)
    image = image_id(node)
    first = node.create(pod_id, kubelet_container(node, image, "sh", "-c", "echo first; exit 1"), config)
    node.start(first)
    node.wait_exit(first)
    second = node.create(pod_id, kubelet_container(node, image, "sleep", "1000", attempt=1), config)
    node.start(second)
    assert {c.id: c.metadata.attempt for c in node.containers()} == {first: 0, second: 1}
    assert Path(config.log_directory, "app/0.log").read_text().endswith("stdout F first\n")
    assert Path(config.log_directory, "app/1.log").exists()
    created = {c.id: c.created_at for c in node.containers()}
    assert created[first] < created[second]
    node.remove(first)
    assert [c.id for c in node.containers()] == [second]
    assert node.fails("ContainerStatus", m.ContainerStatusRequest(container_id=first))[0] == "NOT_FOUND"


def test_the_static_cpu_manager_pins_every_ten_seconds(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    config = kubelet_container(node, image_id(node), "sleep", "1000")
    container_id = node.create(pod_id, config)
    cpus = str(min(os.sched_getaffinity(0)))
    request = m.UpdateContainerResourcesRequest(
        container_id=container_id, linux=m.LinuxContainerResources(cpuset_cpus=cpus)
    )
    # Also before the container has started.
    node.call("UpdateContainerResources", request)
    assert node.status(container_id).resources.linux.cpuset_cpus == cpus
    node.start(container_id)
    for _ in range(2):
        node.call("UpdateContainerResources", request)
    resources = node.status(container_id).resources.linux
    assert (resources.cpuset_cpus, resources.cpu_shares, resources.cpu_quota) == (cpus, 102, 20000)
    allowed = node.exec(container_id, "grep", "Cpus_allowed_list", "/proc/self/status").stdout.decode()
    assert allowed.split()[1] == cpus


def test_a_resize_in_place(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    container_id = node.create(pod_id, kubelet_container(node, image_id(node), "sleep", "1000"))
    node.start(container_id)
    wanted = m.LinuxContainerResources(
        cpu_shares=204, cpu_quota=40000, cpu_period=100000, memory_limit_in_bytes=128 * MIB,
        memory_swap_limit_in_bytes=128 * MIB, oom_score_adj=975, hugepage_limits=[m.HugepageLimit(page_size="2MB")],
    )  # fmt: skip
    node.call("UpdateContainerResources", m.UpdateContainerResourcesRequest(container_id=container_id, linux=wanted))
    told = node.status(container_id).resources.linux
    assert (told.cpu_shares, told.cpu_quota, told.memory_limit_in_bytes) == (204, 40000, 128 * MIB)
    assert int(Path(f"/proc/{_pid(node, container_id)}/oom_score_adj").read_text()) == 975
    node.call(
        "UpdatePodSandboxResources",
        m.UpdatePodSandboxResourcesRequest(
            pod_sandbox_id=pod_id, resources=m.LinuxContainerResources(memory_limit_in_bytes=128 * MIB)
        ),
    )
    # One impossible limit, and none of them changes.
    bad = m.LinuxContainerResources(cpu_shares=300, cpuset_cpus="4096-4097")
    code, words = node.fails(
        "UpdateContainerResources", m.UpdateContainerResourcesRequest(container_id=container_id, linux=bad)
    )
    assert code == "INVALID_ARGUMENT", words
    assert node.status(container_id).resources.linux == told
    shares = cgroups_named(container_id, depth=4)
    assert {(f / "cpu.shares").read_text() for f in shares if (f / "cpu.shares").exists()} <= {"204\n"}
    low = m.LinuxContainerResources(memory_limit_in_bytes=4096, memory_swap_limit_in_bytes=4096)
    code, words = node.fails(
        "UpdateContainerResources", m.UpdateContainerResourcesRequest(container_id=container_id, linux=low)
    )
    assert code == "FAILED_PRECONDITION", words
    assert node.status(container_id).resources.linux == told


def test_only_a_deadline_fails_a_probe(node: Node) -> None:
    """With any other code the kubelet throws the result away, and a hung container is never restarted."""
    container_id = node.run_container(node.run_pod())
    request = node.m.ExecSyncRequest(container_id=container_id, cmd=["sleep", "1001"], timeout=1)
    assert node.fails("ExecSync", request)[0] == "DEADLINE_EXCEEDED"
    assert node.exec(container_id, "sh", "-c", "exit 7").exit_code == 7
    # A kubelet that gives up leaves nothing behind either.
    with pytest.raises(grpc.RpcError) as caught:
        node.call("ExecSync", node.m.ExecSyncRequest(container_id=container_id, cmd=["sleep", "1002"]), seconds=0.5)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    node.wait(lambda: not {b"1001", b"1002"} & set(node.exec(container_id, "ps").stdout.split()))


def test_events_alone_are_enough(node: Node) -> None:
    """Evented PLEG: the pod's status is built from each event, and forgotten by the last."""
    m = node.m
    with connect(node.daemon.address) as cri:
        stream = cri.runtime.GetContainerEvents(m.GetEventsRequest(), timeout=60)
        cri.runtime.Version(m.VersionRequest(), timeout=10)
        pod_id = node.run_pod(node.pod_config("told"))
        first = node.run_container(pod_id, "true", name="first")
        node.wait_exit(first)
        second = node.run_container(pod_id, "sleep", "1000", name="second")
        node.stop_pod(pod_id)
        node.remove_pod(pod_id)
        seen = []
        for event in stream:
            seen.append(event)
            if (event.container_id, event.container_event_type) == (pod_id, m.CONTAINER_DELETED_EVENT):
                break
        stream.cancel()
    kinds = [m.CONTAINER_CREATED_EVENT, m.CONTAINER_STARTED_EVENT, m.CONTAINER_STOPPED_EVENT, m.CONTAINER_DELETED_EVENT]
    for subject in (pod_id, first, second):
        assert [e.container_event_type for e in seen if e.container_id == subject] == kinds
    for event in seen:
        assert event.pod_sandbox_status.metadata.uid.startswith("uid-told")
        assert event.pod_sandbox_status.id == pod_id
        assert event.created_at
    assert [e.created_at for e in seen] == sorted(e.created_at for e in seen)
    started = next(e for e in seen if (e.container_id, e.container_event_type) == (second, m.CONTAINER_STARTED_EVENT))
    states = {status.id: (status.state, status.exit_code) for status in started.containers_statuses}
    assert states == {first: (m.CONTAINER_EXITED, 0), second: (m.CONTAINER_RUNNING, 0)}
    assert seen[-1].pod_sandbox_status.state == m.SANDBOX_NOTREADY


def test_what_is_asked_before_the_first_pod(node: Node) -> None:
    m = node.m
    version = node.call("Version", m.VersionRequest())
    assert all((version.version, version.runtime_name, version.runtime_version, version.runtime_api_version))
    info = node.call("ImageFsInfo", m.ImageFsInfoRequest())
    for system in (*info.image_filesystems, *info.container_filesystems):
        assert Path(system.fs_id.mountpoint).is_dir()
        assert os.statvfs(system.fs_id.mountpoint).f_blocks
    status = node.call("Status", m.StatusRequest())
    assert {c.type: c.status for c in status.status.conditions} == {"RuntimeReady": True, "NetworkReady": True}
    assert "" in {handler.name for handler in status.runtime_handlers}
    assert status.features.supplemental_groups_policy
    config = m.RuntimeConfig(network_config=m.NetworkConfig(pod_cidr="10.244.3.0/24"))
    node.call("UpdateRuntimeConfig", m.UpdateRuntimeConfigRequest(runtime_config=config))
    images = {image.id: image for image in node.call("ListImages", m.ListImagesRequest()).images}
    assert images[image_id(node)].size > 0


def test_the_lists_of_a_kubelet(node: Node) -> None:
    """Filters are present and empty, or hold a state whose number is 0."""
    m = node.m
    pod_id, stopped = node.run_pod(), node.run_pod()
    node.stop_pod(stopped)
    container_id = node.run_container(pod_id)
    waiting = node.create(pod_id, node.container_config(name="waiting"))
    everything = node.call("ListPodSandbox", m.ListPodSandboxRequest(filter=m.PodSandboxFilter())).items
    assert {pod.id for pod in everything} == {pod_id, stopped}
    ready = m.PodSandboxFilter(state=m.PodSandboxStateValue(state=m.SANDBOX_READY))
    assert [pod.id for pod in node.call("ListPodSandbox", m.ListPodSandboxRequest(filter=ready)).items] == [pod_id]
    listed = node.call("ListContainers", m.ListContainersRequest(filter=m.ContainerFilter())).containers
    assert {container.id for container in listed} == {container_id, waiting}
    for state, expected in ((m.CONTAINER_RUNNING, container_id), (m.CONTAINER_CREATED, waiting)):
        wanted = m.ContainerFilter(state=m.ContainerStateValue(state=state))
        found = node.call("ListContainers", m.ListContainersRequest(filter=wanted)).containers
        assert [container.id for container in found] == [expected]
    stats = node.call("ListContainerStats", m.ListContainerStatsRequest(filter=m.ContainerStatsFilter())).stats
    measured = {each.attributes.id: each for each in stats}
    assert measured[container_id].cpu.usage_core_nano_seconds.value > 0
    assert measured[container_id].writable_layer.fs_id.mountpoint


def test_pod_stats_for_a_kubelet_that_takes_them_from_here(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    [stats] = node.call("ListPodSandboxStats", m.ListPodSandboxStatsRequest(filter=m.PodSandboxStatsFilter())).stats
    assert stats.attributes.id == pod_id
    assert stats.linux.cpu.usage_core_nano_seconds.value > 0
    assert stats.linux.memory.working_set_bytes.value > 0
    assert stats.linux.process.process_count.value >= 1
    assert stats.linux.network.default_interface.name == "eth0"
    assert [each.attributes.id for each in stats.linux.containers] == [container_id]
    names = {each.name for each in node.call("ListMetricDescriptors", m.ListMetricDescriptorsRequest()).descriptors}
    [metrics] = node.call("ListPodSandboxMetrics", m.ListPodSandboxMetricsRequest()).pod_metrics
    assert {metric.name for metric in metrics.metrics} <= names
    told = {metric.name: metric for metric in metrics.container_metrics[0].metrics}
    assert told["container_threads"].value.value >= 1
    assert told["container_processes"].value.value >= 1
    assert told["container_file_descriptors"].value.value >= 3


def test_a_kubelet_of_the_old_api(node: Node) -> None:
    """1.20 knows the service by another name, and the older form of profiles."""
    m = node.m
    with connect(node.daemon.address, "runtime.v1alpha2") as cri:
        version = cri.runtime.Version(m.VersionRequest(), timeout=10)
        assert version.runtime_api_version == "v1alpha2"
        config = node.pod_config("old")
        config.linux.security_context.seccomp_profile_path = "runtime/default"
        pod_id = cri.runtime.RunPodSandbox(m.RunPodSandboxRequest(config=config), timeout=60).pod_sandbox_id
        asked = node.container_config()
        asked.linux.security_context.seccomp_profile_path = "runtime/default"
        asked.linux.resources.oom_score_adj = -997
        request = m.CreateContainerRequest(pod_sandbox_id=pod_id, config=asked, sandbox_config=config)
        container_id = cri.runtime.CreateContainer(request, timeout=60).container_id
        cri.runtime.StartContainer(m.StartContainerRequest(container_id=container_id), timeout=60)
        status = cri.runtime.ContainerStatus(m.ContainerStatusRequest(container_id=container_id), timeout=10).status
        assert status.state == m.CONTAINER_RUNNING
        seccomp = cri.runtime.ExecSync(
            m.ExecSyncRequest(container_id=container_id, cmd=["cat", "/proc/self/status"], timeout=10), timeout=20
        )
        assert b"Seccomp:\t2" in seccomp.stdout


def test_streamed_lists(node: Node) -> None:
    """CRIListStreaming: the same answers, in messages."""
    m, runtime = node.m, node.cri.runtime
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)

    def ids(stream: Any, field: str, of: str = "id") -> list[str]:
        return [getattr(item, of) for answer in stream for item in getattr(answer, field)]

    assert ids(runtime.StreamPodSandboxes(m.StreamPodSandboxesRequest(), timeout=20), "pod_sandboxes") == [pod_id]
    assert ids(runtime.StreamContainers(m.StreamContainersRequest(), timeout=20), "containers") == [container_id]
    images = node.cri.image.StreamImages(m.StreamImagesRequest(), timeout=20)
    assert image_id(node) in ids(images, "images")
    metrics = runtime.StreamPodSandboxMetrics(m.StreamPodSandboxMetricsRequest(), timeout=20)
    assert ids(metrics, "pod_sandbox_metrics", of="pod_sandbox_id") == [pod_id]
    [stats] = [s for a in runtime.StreamContainerStats(m.StreamContainerStatsRequest()) for s in a.container_stats]
    assert stats.attributes.id == container_id
    [pods] = [s for a in runtime.StreamPodSandboxStats(m.StreamPodSandboxStatsRequest()) for s in a.pod_sandbox_stats]
    assert pods.attributes.id == pod_id
