"""Pods with users of their own (CRI UserNamespace, mode POD), and what they leave on the host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host import namespaces
from isulad_py.runtime.runc import SAFE_CRUN
from tests.stand.node import Node
from tests.stand.runtimes import program

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def _safe_runtime(request: pytest.FixtureRequest) -> None:
    """crun before 1.24 is refused, which has a test of its own."""
    wanted = "gives_away" not in request.node.originalname
    if unsafe(request.node.callspec.params["shared_node"]) is wanted:
        pytest.skip("crun before 1.24 would give away the host's /dev/null" if wanted else "this runtime is safe")


def unsafe(name: str) -> bool:
    text = subprocess.run([program(name), "--version"], capture_output=True, text=True, check=True).stdout
    number = text.split()[2].split(".")
    return name == "crun" and (int(number[0]), int(number[1])) < SAFE_CRUN


def test_a_runtime_that_gives_away_devices_is_refused(node: Node) -> None:
    code, words = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=mapped_pod(node, 100_000)))
    assert (code, "userns_options: runtime crun" in words) == ("UNIMPLEMENTED", True), words
    assert Path(os.devnull).stat().st_uid == 0


def id_mapping(node: Node, first: int, length: int = 65536) -> list[Any]:
    return [node.m.IDMapping(container_id=0, host_id=first, length=length)]


def mapped_pod(node: Node, first: int, **fields: Any) -> Any:
    config = node.pod_config(**fields)
    options = config.linux.security_context.namespace_options.userns_options
    options.uids.extend(id_mapping(node, first))
    options.gids.extend(id_mapping(node, first))
    return config


def mapped_container(node: Node, first: int, *command: str, **fields: Any) -> Any:
    """As a kubelet asks for it: the container's own namespaces are the pod's."""
    config = node.container_config(*command, **fields)
    options = config.linux.security_context.namespace_options
    options.pid = node.m.CONTAINER
    options.userns_options.uids.extend(id_mapping(node, first))
    options.userns_options.gids.extend(id_mapping(node, first))
    return config


def said(node: Node, container_id: str, *command: str) -> str:
    answer = node.exec(container_id, *command)
    assert answer.exit_code == 0, answer.stderr
    return str(answer.stdout.decode())


def owner(path: Path) -> tuple[int, int]:
    return path.lstat().st_uid, path.lstat().st_gid


def writable_layer(node: Node, container_id: str) -> Path:
    return node.graph / "overlay" / "containers" / container_id / "diff"


def test_two_pods_map_one_image_to_their_own_users(node: Node) -> None:
    script = "echo to the log > /dev/stdout; mkdir /made && chown 7:8 /made && sleep 1000"
    layers = sorted((node.graph / "overlay" / "layers").iterdir())
    for first in (100_000, 300_000):
        pod_id = node.run_pod(mapped_pod(node, first, name=f"from-{first}"))
        container_id = node.create(pod_id, mapped_container(node, first, "sh", "-c", script))
        node.start(container_id)
        assert said(node, container_id, "cat", "/proc/1/uid_map").split() == ["0", str(first), "65536"]
        assert said(node, container_id, "stat", "-c", "%u:%g", "/", "/bin", "/etc/hosts", "/dev/shm").split() == (
            ["0:0"] * 4
        )
        made = writable_layer(node, container_id) / "made"
        node.wait(lambda made=made, first=first: made.exists() and owner(made) == (first + 7, first + 8))
        verbose = node.m.ContainerStatusRequest(container_id=container_id, verbose=True)
        pid = json.loads(node.call("ContainerStatus", verbose).info["info"])["pid"]
        assert owner(Path(f"/proc/{pid}")) == (first, first)
        log = Path(node.status(container_id).log_path)
        node.wait(lambda log=log: log.read_text().endswith("stdout F to the log\n"))
        said(node, container_id, "sh", "-c", "echo x > /dev/stderr; echo y >> /etc/hosts; touch /dev/shm/mine")
    assert sorted((node.graph / "overlay" / "layers").iterdir()) == layers
    assert {owner(path / "diff" / "bin") for path in layers if (path / "diff" / "bin").exists()} == {(0, 0)}


def test_a_pod_with_a_pid_namespace_of_its_own(node: Node) -> None:
    config = mapped_pod(node, 100_000)
    config.linux.security_context.namespace_options.pid = node.m.POD
    pod_id = node.run_pod(config)
    container = mapped_container(node, 100_000, "sleep", "1000")
    container.linux.security_context.namespace_options.pid = node.m.POD
    container_id = node.create(pod_id, container)
    node.start(container_id)
    assert "sleep 2147483647" in said(node, container_id, "ps")


def test_a_user_who_is_not_root(node: Node) -> None:
    pod_id = node.run_pod(mapped_pod(node, 100_000))
    config = mapped_container(
        node, 100_000, "sh", "-c", "echo said > /dev/stdout; sleep 1000", working_dir="/not/there/yet"
    )
    config.linux.security_context.run_as_user.value = 1000
    config.linux.security_context.run_as_group.value = 1000
    container_id = node.create(pod_id, config)
    node.start(container_id)
    log = Path(node.status(container_id).log_path)
    node.wait(lambda: log.read_text().endswith("said\n"))
    assert said(node, container_id, "sh", "-c", "id -u; echo x > /dev/stderr; touch mine; pwd").split() == [
        "1000",
        "/not/there/yet",
    ]
    below = writable_layer(node, container_id) / "not" / "there" / "yet"
    assert owner(below) == owner(below / "mine") == (101_000, 101_000)
    code, words = node.fails("CreateContainer", not_mapped(node, pod_id))
    assert (code, "run_as_user: 70000 is not mapped" in words) == ("INVALID_ARGUMENT", True)


def not_mapped(node: Node, pod_id: str) -> Any:
    config = mapped_container(node, 100_000, name="other")
    config.linux.security_context.run_as_user.value = 70_000
    return node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)


def test_the_network_is_the_pods(node: Node) -> None:
    config = mapped_pod(node, 100_000)
    config.linux.sysctls["net.ipv4.ip_local_port_range"] = "2000 3001"
    config.linux.sysctls["kernel.shmmax"] = "65536"
    pod_id = node.run_pod(config)
    container = mapped_container(node, 100_000)
    container.linux.security_context.capabilities.add_capabilities.append("NET_ADMIN")
    container_id = node.create(pod_id, container)
    node.start(container_id)
    address = node.pod_status(pod_id).network.ip
    assert address in said(node, container_id, "ip", "addr")
    assert address in said(node, container_id, "cat", "/etc/hosts")
    # Who is root in there may do with it as he likes: it is owned by the user namespace.
    said(node, container_id, "ip", "link", "set", "lo", "mtu", "1400")
    assert said(node, container_id, "cat", "/proc/sys/net/ipv4/ip_local_port_range").split() == ["2000", "3001"]
    assert said(node, container_id, "cat", "/proc/sys/kernel/shmmax").split() == ["65536"]
    path = str(node.state / "isulad" / "pods" / pod_id / "ns" / "net")

    def listen() -> str:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return str(server.getsockname()[0])

    assert namespaces.call_in_netns(path, listen) == "127.0.0.1"


def test_a_privileged_container_has_no_rights_on_the_host(node: Node) -> None:
    config = mapped_pod(node, 100_000)
    config.linux.security_context.privileged = True
    pod_id = node.run_pod(config)
    container = mapped_container(node, 100_000)
    container.linux.security_context.privileged = True
    container_id = node.create(pod_id, container)
    node.start(container_id)
    said(node, container_id, "sh", "-c", "mkdir /mnt && mount -t tmpfs none /mnt && umount /mnt")
    assert node.exec(container_id, "sh", "-c", "echo 1 > /proc/sys/kernel/panic").exit_code != 0
    assert node.exec(container_id, "mknod", "/null", "c", "1", "3").exit_code != 0


def test_an_image_volume_belongs_to_the_pods_users(node: Node) -> None:
    pod_id = node.run_pod(mapped_pod(node, 100_000))
    volume = node.m.Mount(
        container_path="/img",
        image=node.m.ImageSpec(image=node.image),
        readonly=True,
        uidMappings=id_mapping(node, 100_000),
        gidMappings=id_mapping(node, 100_000),
    )
    container_id = node.create(pod_id, mapped_container(node, 100_000, mounts=[volume]))
    node.start(container_id)
    assert said(node, container_id, "stat", "-c", "%u:%g", "/img", "/img/bin").split() == ["0:0", "0:0"]


@pytest.mark.parametrize("kind", ["network", "pid", "ipc"])
def test_the_hosts_namespaces_are_refused_by_field(node: Node, kind: str) -> None:
    config = mapped_pod(node, 100_000)
    setattr(config.linux.security_context.namespace_options, kind, node.m.NODE)
    code, words = node.fails("RunPodSandbox", node.m.RunPodSandboxRequest(config=config))
    assert code == "INVALID_ARGUMENT"
    assert f"namespace_options.{kind}: NODE in a user namespace" in words


def maps_volumes(node: Node) -> bool:
    """As Status promises it for the default handler."""
    (features,) = [h.features for h in node.call("Status", node.m.StatusRequest()).runtime_handlers if not h.name]
    return bool(features.user_namespaces)


def mapped_volume(node: Node, first: int, folder: Path) -> Any:
    ids = id_mapping(node, first)
    return node.m.Mount(container_path="/v", host_path=str(folder), uidMappings=ids, gidMappings=ids)


def test_mapped_mounts_are_refused_by_field_where_the_runtime_cannot(node: Node) -> None:
    if maps_volumes(node):
        pytest.skip("this runtime can")
    pod_id = node.run_pod(mapped_pod(node, 100_000))
    config = mapped_container(node, 100_000, mounts=[mapped_volume(node, 100_000, node.mark.root)])
    request = node.m.CreateContainerRequest(pod_sandbox_id=pod_id, config=config)
    code, words = node.fails("CreateContainer", request)
    assert code == "UNIMPLEMENTED"
    assert "config.mounts[0].uidMappings" in words


def test_mapped_mounts_belong_to_the_pods_users(node: Node) -> None:
    if not maps_volumes(node):
        pytest.skip("this runtime has no id-mapped mounts: TEST_RUNC and TEST_CRUN may name newer ones")
    folder = node.mark.root / "volume"
    folder.mkdir(exist_ok=True)
    for first in (100_000, 300_000):
        pod_id = node.run_pod(mapped_pod(node, first, name=f"volume-{first}"))
        command = ("sh", "-c", "echo > /dev/stdout; sleep 1000")
        config = mapped_container(node, first, *command, mounts=[mapped_volume(node, first, folder)])
        container_id = node.create(pod_id, config)
        node.start(container_id)
        assert said(node, container_id, "stat", "-c", "%u:%g", "/v").split() == ["0:0"]
        said(node, container_id, "sh", "-c", f"touch /v/{first} && chown 7:8 /v/{first}")
        assert owner(folder / str(first)) == (7, 8)
        log = Path(node.status(container_id).log_path)
        node.wait(lambda log=log: log.read_text().endswith("stdout F \n"))
        assert "warning" not in log.read_text()
