"""A pod's whole life on real parts, through a real client."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.cri_client import connect
from tests.stand.node import Node

pytestmark = pytest.mark.root


def test_the_main_job(node: Node) -> None:
    config = node.pod_config("web")
    pod_id = node.run_pod(config)
    status = node.pod_status(pod_id)
    assert status.state == node.m.SANDBOX_READY
    assert status.metadata == config.metadata
    assert dict(status.labels) == {"app": "web"}
    assert dict(status.annotations) == {"note": "exactly as given"}
    assert status.network.ip in node.addresses()

    script = "echo to stdout; echo to stderr >&2; exec sleep 1000"
    container_id = node.run_container(pod_id, "sh", "-c", script)
    running = node.status(container_id)
    assert running.state == node.m.CONTAINER_RUNNING
    assert running.image.image == node.image
    assert running.image_ref
    assert running.image_id.startswith("sha256:")
    assert 0 < running.created_at <= running.started_at

    answer = node.exec(container_id, "sh", "-c", "hostname; echo oops >&2; exit 3")
    assert (answer.stdout, answer.stderr, answer.exit_code) == (b"web\n", b"oops\n", 3)
    address = node.exec(container_id, "ip", "-4", "addr", "show", "dev", "eth0").stdout.decode()
    assert status.network.ip in address

    log = Path(running.log_path)
    lines = node.wait(lambda: (t := log.read_text().splitlines()) and len(t) == 2 and t)
    assert sorted(line.split(" ", 1)[1] for line in lines) == ["stderr F to stderr", "stdout F to stdout"]

    node.stop(container_id, timeout=1)
    ended = node.status(container_id)
    assert ended.state == node.m.CONTAINER_EXITED
    assert (ended.exit_code, ended.reason) == (137, "Error")
    assert ended.started_at <= ended.finished_at
    node.remove(container_id)
    node.stop_pod(pod_id)
    assert node.pod_status(pod_id).state == node.m.SANDBOX_NOTREADY
    assert node.addresses() == []
    node.remove_pod(pod_id)
    assert node.fails("PodSandboxStatus", node.m.PodSandboxStatusRequest(pod_sandbox_id=pod_id))[0] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [("exit 0", 0, "Completed"), ("exit 7", 7, "Error"), ("sh -c 'kill -KILL $$'; exit $?", 137, "Error")],
)
def test_how_a_container_ended_is_told(node: Node, script: str, code: int, reason: str) -> None:
    container_id = node.run_container(node.run_pod(), "sh", "-c", script)
    status = node.wait_exit(container_id)
    assert (status.exit_code, status.reason) == (code, reason)
    assert status.created_at <= status.started_at <= status.finished_at <= time.time_ns()


def test_a_container_killed_for_memory_says_so(node: Node) -> None:
    resources = node.m.LinuxContainerResources(memory_limit_in_bytes=16 << 20, memory_swap_limit_in_bytes=16 << 20)
    # dd's buffer alone is more than the limit, and it is touched by the read.
    container_id = node.run_container(
        node.run_pod(),
        "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1",
        linux=node.m.LinuxContainerConfig(resources=resources),
    )  # fmt: skip
    status = node.wait_exit(container_id)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


def test_a_program_that_does_not_exist_is_a_start_error_and_the_pod_goes_on(node: Node) -> None:
    pod_id = node.run_pod()
    try:
        container_id = node.create(pod_id, node.container_config("no-such-program"))
    except grpc.RpcError as error:
        assert "no-such-program" in (error.details() or "")  # noqa: PT017 - both ways are right
        assert node.containers() == []
    else:
        code, words = node.fails("StartContainer", node.m.StartContainerRequest(container_id=container_id))
        assert "no-such-program" in words
        assert code not in {"UNKNOWN", "OK"}
        assert node.status(container_id).reason == "StartError"
    node.run_container(pod_id, name="second")


def test_ids_may_be_shortened(node: Node) -> None:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    assert node.pod_status(pod_id[:10]).id == pod_id
    assert node.status(container_id[:10]).id == container_id
    assert node.exec(container_id[:10], "true").exit_code == 0
    node.stop(container_id[:10])
    node.remove(container_id[:10])


def test_stop_and_remove_are_idempotent_and_status_of_the_unknown_is_not_found(node: Node) -> None:
    node.stop_pod("0123456789abcdef")
    node.remove_pod("0123456789abcdef")
    node.stop("0123456789abcdef")
    node.remove("0123456789abcdef")
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    for _ in range(2):
        node.stop(container_id)
    for _ in range(2):
        node.stop_pod(pod_id)
    for _ in range(2):
        node.remove(container_id)
    for _ in range(2):
        node.remove_pod(pod_id)
    m = node.m
    assert node.fails("ContainerStatus", m.ContainerStatusRequest(container_id="0123456789"))[0] == "NOT_FOUND"
    assert node.fails("PodSandboxStatus", m.PodSandboxStatusRequest(pod_sandbox_id="0123456789"))[0] == "NOT_FOUND"


def test_removing_a_pod_takes_its_running_containers_along(node: Node) -> None:
    pod_id = node.run_pod()
    for name in ("a", "b", "c"):
        node.run_container(pod_id, name=name)
    node.remove_pod(pod_id)
    assert node.containers() == []


def test_a_name_is_taken_once(node: Node) -> None:
    config = node.pod_config("twin")
    pod_id = node.run_pod(config)
    code, words = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=config))
    assert code == "ALREADY_EXISTS"
    assert pod_id in words


def test_a_stubborn_container_is_killed_after_its_grace(node: Node) -> None:
    container_id = node.run_container(node.run_pod(), "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    node.stop(container_id, timeout=1)
    assert node.status(container_id).exit_code == 137


def test_a_polite_container_ends_in_its_own_way(node: Node) -> None:
    container_id = node.run_container(
        node.run_pod(), "sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"
    )
    log = Path(node.status(container_id).log_path)
    node.wait(lambda: "up" in log.read_text())
    node.stop(container_id, timeout=20)
    assert node.status(container_id).exit_code == 5


def test_exec_beyond_its_time_ends_the_whole_tree(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    request = node.m.ExecSyncRequest(container_id=container_id, cmd=["sh", "-c", "sleep 4321 & sleep 4321"], timeout=1)
    assert node.fails("ExecSync", request)[0] == "DEADLINE_EXCEEDED"
    assert b"4321" not in node.exec(container_id, "ps").stdout


def test_exec_of_nothing_runnable_is_an_error_with_a_name(node: Node) -> None:
    container_id = node.run_container(node.run_pod())
    request = node.m.ExecSyncRequest(container_id=container_id, cmd=["no-such-program"], timeout=10)
    code, words = node.fails("ExecSync", request)
    assert "no-such-program" in words
    assert code != "UNKNOWN"


def test_a_log_is_reopened_after_its_rotation(node: Node) -> None:
    container_id = node.run_container(node.run_pod(), "sh", "-c", "while :; do echo line; sleep 0.05; done")
    log = Path(node.status(container_id).log_path)
    node.wait(lambda: "line" in log.read_text())
    log.rename(log.with_suffix(".old"))
    node.call("ReopenContainerLog", node.m.ReopenContainerLogRequest(container_id=container_id))
    assert log.exists()
    node.wait(lambda: "line" in log.read_text())


def test_a_log_that_cannot_be_reopened_goes_on_where_it_was(node: Node) -> None:
    """The monitor, told to, would end itself, and take the container's output along."""
    container_id = node.run_container(node.run_pod(), "sh", "-c", "while :; do echo line; sleep 0.05; done")
    log = Path(node.status(container_id).log_path)
    node.wait(lambda: "line" in log.read_text())
    request = node.m.ReopenContainerLogRequest(container_id=container_id)
    old = log.with_suffix(".old")
    log.rename(old)

    def goes_on(file: Path) -> bool:
        size = file.stat().st_size
        return bool(node.wait(lambda: file.stat().st_size > size))

    log.mkdir()
    code, words = node.fails("ReopenContainerLog", request)
    assert (code, f"{log} is a directory" in words) == ("FAILED_PRECONDITION", True), words
    assert goes_on(old)
    log.rmdir()
    folder, away = log.parent, log.parent.with_suffix(".away")
    folder.rename(away)
    code, words = node.fails("ReopenContainerLog", request)
    assert (code, str(log) in words) == ("FAILED_PRECONDITION", True), words
    assert goes_on(away / old.name)
    away.rename(folder)
    node.call("ReopenContainerLog", request)
    assert goes_on(log)


def test_host_network_has_no_address_of_its_own(node: Node) -> None:
    config = node.pod_config("host")
    config.linux.security_context.namespace_options.network = node.m.NODE
    pod_id = node.run_pod(config)
    assert node.pod_status(pod_id).network.ip == ""
    assert node.addresses() == []
    container_id = node.run_container(pod_id)
    links = node.exec(container_id, "ls", "/sys/class/net").stdout.decode().split()
    assert node.network.bridge in links


def test_a_shared_pid_namespace_has_a_pause_container(node: Node) -> None:
    config = node.pod_config("shared")
    config.linux.security_context.namespace_options.pid = node.m.POD
    pod_id = node.run_pod(config)
    options = node.m.NamespaceOption(pid=node.m.POD)
    linux = node.m.LinuxContainerConfig(
        security_context=node.m.LinuxContainerSecurityContext(namespace_options=options)
    )
    first = node.run_container(pod_id, "sleep", "1001", name="first", linux=linux)
    second = node.run_container(pod_id, "sleep", "1002", name="second", linux=linux)
    seen = node.exec(second, "ps").stdout.decode()
    assert "sleep 1001" in seen
    assert "2147483647" in seen
    node.stop(first)
    assert node.status(second).state == node.m.CONTAINER_RUNNING


def test_resolv_conf_hostname_shm_and_sysctls(node: Node) -> None:
    config = node.pod_config("names", dns_config=node.m.DNSConfig(
        servers=["10.0.0.10"], searches=["a.example", "b.example"], options=["ndots:5"]
    ))  # fmt: skip
    config.linux.sysctls["net.ipv4.ip_unprivileged_port_start"] = "80"
    config.linux.sysctls["kernel.shm_rmid_forced"] = "1"
    container_id = node.run_container(node.run_pod(config))
    resolv = node.exec(container_id, "cat", "/etc/resolv.conf").stdout.decode().splitlines()
    assert resolv == ["search a.example b.example", "nameserver 10.0.0.10", "options ndots:5"]
    assert node.exec(container_id, "cat", "/etc/hostname").stdout == b"names\n"
    assert b"tmpfs" in node.exec(container_id, "grep", "/dev/shm", "/proc/mounts").stdout
    for path, value in (("net/ipv4/ip_unprivileged_port_start", b"80\n"), ("kernel/shm_rmid_forced", b"1\n")):
        assert node.exec(container_id, "cat", f"/proc/sys/{path}").stdout == value


def test_any_user_may_listen_below_1024_and_ping(node: Node) -> None:
    asked = node.container_config("sh", "-c", "nc -l -p 80 & exec sleep 1000")
    asked.linux.security_context.run_as_user.value = 1000
    asked.linux.security_context.capabilities.drop_capabilities.append("ALL")
    container_id = node.create(node.run_pod(), asked)
    node.start(container_id)
    node.wait(lambda: b":80 " in node.exec(container_id, "netstat", "-ltn").stdout)
    groups = node.exec(container_id, "cat", "/proc/sys/net/ipv4/ping_group_range").stdout.split()
    assert groups == [b"0", b"2147483647"]


def test_statistics_are_there_for_running_containers(node: Node) -> None:
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id, "sh", "-c", "head -c 1000000 /dev/zero > /file; sleep 1000")
    stats = node.call("ContainerStats", node.m.ContainerStatsRequest(container_id=container_id)).stats
    assert stats.attributes.id == container_id
    assert stats.cpu.usage_core_nano_seconds.value > 0
    assert stats.memory.working_set_bytes.value > 0
    used = lambda: node.call("ContainerStats", node.m.ContainerStatsRequest(container_id=container_id)).stats  # noqa: E731
    node.wait(lambda: used().writable_layer.used_bytes.value >= 1_000_000, seconds=30)
    listed = node.call("ListContainerStats", node.m.ListContainerStatsRequest()).stats
    assert [entry.attributes.id for entry in listed] == [container_id]


def test_events_tell_the_whole_story(node: Node) -> None:
    m = node.m
    with connect(node.daemon.address) as cri:
        stream = cri.runtime.GetContainerEvents(m.GetEventsRequest(), timeout=60)
        # The subscription is there once the call is; a Version on the same connection comes after it.
        cri.runtime.Version(m.VersionRequest(), timeout=10)
        pod_id = node.run_pod()
        container_id = node.run_container(pod_id, "true")
        node.wait_exit(container_id)
        node.remove(container_id)
        node.remove_pod(pod_id)
        seen = []
        for event in stream:
            seen.append((event.container_id, event.container_event_type))
            assert event.container_id == pod_id or event.pod_sandbox_status.metadata.name
            if seen[-1] == (pod_id, m.CONTAINER_DELETED_EVENT):
                break
        stream.cancel()
    kinds = [m.CONTAINER_CREATED_EVENT, m.CONTAINER_STARTED_EVENT, m.CONTAINER_STOPPED_EVENT, m.CONTAINER_DELETED_EVENT]
    assert [kind for who, kind in seen if who == container_id] == kinds
    assert [kind for who, kind in seen if who == pod_id] == kinds


def test_a_host_port_reaches_the_pod(node: Node) -> None:
    port = 20000 + time.time_ns() % 10000
    config = node.pod_config("ported", port_mappings=[node.m.PortMapping(container_port=80, host_port=port)])
    pod_id = node.run_pod(config)
    node.run_container(pod_id, "sh", "-c", "mkdir -p /w; echo hello > /w/index.html; exec busybox httpd -f -p 80 -h /w")
    ip = node.pod_status(pod_id).network.ip

    def answer() -> str:
        try:
            with urllib.request.urlopen(f"http://{ip}:80/", timeout=2) as reply:
                return str(reply.read().decode())
        except OSError:
            return ""

    node.wait(lambda: answer() == "hello\n")


def test_pods_in_parallel(node: Node) -> None:
    def life(number: int) -> None:
        pod_id = node.run_pod(node.pod_config(f"many{number}"))
        container_id = node.run_container(pod_id)
        assert node.exec(container_id, "hostname").stdout.decode() == f"many{number}\n"
        node.stop_pod(pod_id)
        node.remove_pod(pod_id)

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(life, range(16)))


def test_verbose_statuses(node: Node) -> None:
    m = node.m
    pod_id = node.run_pod()
    container_id = node.run_container(pod_id)
    info = node.call("ContainerStatus", m.ContainerStatusRequest(container_id=container_id, verbose=True)).info
    told = json.loads(info["info"])
    assert told["pid"] > 0
    assert told["runtimeSpec"]["process"]["args"] == ["sleep", "1000"]
    pod_info = node.call("PodSandboxStatus", m.PodSandboxStatusRequest(pod_sandbox_id=pod_id, verbose=True)).info
    assert json.loads(pod_info["info"])["environment"]["netns_path"]
    status = node.call("Status", m.StatusRequest(verbose=True))
    assert {c.type: c.status for c in status.status.conditions} == {"RuntimeReady": True, "NetworkReady": True}
    assert json.loads(status.info["config"])["cgroup-parent"] == node.mark.cgroup_parent
    assert "runc" in json.loads(status.info["versions"])


def test_the_hosts_devices_stay_its_own(node: Node) -> None:
    """A command of a user gets its input and outputs; /dev/null, where it has none, is not among them."""
    config = node.container_config()
    config.linux.security_context.run_as_user.value = 1234
    container_id = node.create(node.run_pod(), config)
    node.call("StartContainer", node.m.StartContainerRequest(container_id=container_id))
    assert node.exec(container_id, "sh", "-c", "id -u; cat").stdout == b"1234\n"
    assert Path(os.devnull).stat().st_uid == 0
