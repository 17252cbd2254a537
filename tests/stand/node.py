"""A whole node on a stand: network, registry with a small image, our daemon; and the calls that most tests make."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from tests import images
from tests.cri_client import Cri, connect
from tests.stand.cgroups import cgroups_named
from tests.stand.daemon import StandDaemon, stand_daemon
from tests.stand.disk import memory_disk
from tests.stand.leftovers import clear, find_leftovers
from tests.stand.mark import Mark, make_mark, run
from tests.stand.network import StandNetwork, stand_network
from tests.stand.registry import registry
from tests.stand.variant import PATIENCE, SYSTEMD

CALL_SECONDS = 60 * PATIENCE


@dataclass
class Node:
    mark: Mark
    daemon: StandDaemon
    network: StandNetwork
    registry: str
    graph: Path
    state: Path
    image: str
    _cri: Cri | None = field(default=None, repr=False)
    _count: int = 0

    @property
    def cri(self) -> Cri:
        """The client; made anew after `reconnect`."""
        if self._cri is None:
            self._cri = connect(self.daemon.address)
        return self._cri

    @property
    def m(self) -> Any:
        return self.cri.m

    def reconnect(self) -> None:
        if self._cri is not None:
            self._cri.channel.close()
            self._cri = None

    def call(self, method: str, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """One unary call of either service."""
        service = self.cri.image if hasattr(self.cri.image, method) else self.cri.runtime
        return getattr(service, method)(request, timeout=seconds)

    def fails(self, method: str, request: Any, seconds: float = CALL_SECONDS) -> tuple[str, str]:
        """Code and message of a call that must fail."""
        try:
            answer = self.call(method, request, seconds)
        except grpc.RpcError as error:
            return error.code().name, error.details() or ""
        raise AssertionError(f"{method} succeeded: {answer}")

    def pull(self, image: str = "") -> str:
        request = self.m.PullImageRequest(image=self.m.ImageSpec(image=image or self.image))
        return str(self.call("PullImage", request).image_ref)

    def pod_config(self, name: str = "", **fields: Any) -> Any:
        """A pod as a kubelet asks for it: a name of its own, PID mode CONTAINER, a log folder."""
        self._count += 1
        name = name or f"pod{self._count}"
        logs = self.mark.root / "logs" / name
        logs.mkdir(parents=True, exist_ok=True)
        config = self.m.PodSandboxConfig(
            metadata=self.m.PodSandboxMetadata(name=name, namespace="default", uid=f"uid-{name}-{self._count}"),
            hostname=name,
            log_directory=str(logs),
            labels={"app": name},
            annotations={"note": "exactly as given"},
        )
        config.linux.security_context.namespace_options.pid = self.m.CONTAINER
        config.MergeFrom(self.m.PodSandboxConfig(**fields))
        return config

    def run_pod(self, config: Any = None, **fields: Any) -> str:
        config = config if config is not None else self.pod_config(**fields)
        return str(self.call("RunPodSandbox", self.m.RunPodSandboxRequest(config=config)).pod_sandbox_id)

    def container_config(self, *command: str, name: str = "main", **fields: Any) -> Any:
        config = self.m.ContainerConfig(
            metadata=self.m.ContainerMetadata(name=name),
            image=self.m.ImageSpec(image=self.image),
            command=list(command) or ["sleep", "1000"],
            log_path=f"{name}.log",
        )
        config.MergeFrom(self.m.ContainerConfig(**fields))
        return config

    def create(self, pod_id: str, config: Any = None, pod_config: Any = None) -> str:
        request = self.m.CreateContainerRequest(
            pod_sandbox_id=pod_id,
            config=config if config is not None else self.container_config(),
            sandbox_config=pod_config,
        )
        return str(self.call("CreateContainer", request).container_id)

    def start(self, container_id: str) -> None:
        self.call("StartContainer", self.m.StartContainerRequest(container_id=container_id))

    def run_container(self, pod_id: str, *command: str, **fields: Any) -> str:
        container_id = self.create(pod_id, self.container_config(*command, **fields))
        self.start(container_id)
        return container_id

    def exec(self, container_id: str, *command: str, timeout: int = 20) -> Any:
        request = self.m.ExecSyncRequest(container_id=container_id, cmd=list(command), timeout=int(timeout * PATIENCE))
        return self.call("ExecSync", request)

    def status(self, container_id: str) -> Any:
        return self.call("ContainerStatus", self.m.ContainerStatusRequest(container_id=container_id)).status

    def pod_status(self, pod_id: str) -> Any:
        return self.call("PodSandboxStatus", self.m.PodSandboxStatusRequest(pod_sandbox_id=pod_id)).status

    def wait_exit(self, container_id: str) -> Any:
        return self.wait(lambda: (s := self.status(container_id)).state == self.m.CONTAINER_EXITED and s)

    def wait(self, condition: Callable[[], Any], seconds: float = 20) -> Any:
        """The condition's first true value; it polls, because what is waited for gives no sign."""
        deadline = time.monotonic() + seconds * PATIENCE
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s; the daemon said:\n{self.daemon.last_words(30)}")
            time.sleep(0.02)

    def stop(self, container_id: str, timeout: int = 0) -> None:
        self.call("StopContainer", self.m.StopContainerRequest(container_id=container_id, timeout=timeout))

    def remove(self, container_id: str) -> None:
        self.call("RemoveContainer", self.m.RemoveContainerRequest(container_id=container_id))

    def stop_pod(self, pod_id: str) -> None:
        self.call("StopPodSandbox", self.m.StopPodSandboxRequest(pod_sandbox_id=pod_id))

    def remove_pod(self, pod_id: str) -> None:
        self.call("RemovePodSandbox", self.m.RemovePodSandboxRequest(pod_sandbox_id=pod_id))

    def pods(self) -> list[Any]:
        return list(self.call("ListPodSandbox", self.m.ListPodSandboxRequest()).items)

    def containers(self) -> list[Any]:
        return list(self.call("ListContainers", self.m.ListContainersRequest()).containers)

    def clear_pods(self) -> None:
        for pod in self.pods():
            self.stop_pod(pod.id)
            self.remove_pod(pod.id)

    def addresses(self) -> list[str]:
        """Reserved in the network's address book (host-local keeps a file for each)."""
        book = self.network.conf_dir.parent / "ipam" / self.network.name
        return sorted(entry.name for entry in book.iterdir() if entry.name[0].isdigit()) if book.exists() else []

    def left_of_pods(self) -> list[str]:
        """What a node without pods must not have: processes, mounts, cgroups, addresses, packet filter rules."""
        daemon = self.daemon.process.pid if self.daemon.process else 0
        found = [line for line in find_leftovers(self.mark, folder_too=False) if not self._belongs(line, daemon)]
        roots = (folder for folder in cgroups_named(self.mark.word) if folder.name in self._root_names())
        found += [f"cgroup {path}" for folder in roots for path in folder.iterdir() if path.is_dir()]
        return found + [f"address {address}" for address in self.addresses()]

    def _root_names(self) -> tuple[str, ...]:
        """Of the cgroup that the daemon keeps for pods that name no parent."""
        return (self.mark.word, f"{self.mark.word}.slice")

    def _belongs(self, line: str, daemon: int) -> bool:
        """Of the stand itself: the daemon, the registry, the disk of the state folder, the bridge."""
        own = (f"process {daemon}:", f"link {self.network.bridge}")
        return (
            line.startswith(own)
            or ("docker-registry" in line and line.startswith("process "))
            or line == f"mount {self.state}"
            or (line.startswith("cgroup ") and Path(line.removeprefix("cgroup ")).name in self._root_names())
        )


def _remove_root_cgroup(mark: Mark) -> None:
    """The daemon keeps the root of its pods' cgroups, as /isulad on a node; below it there must be nothing. A slice
    lives as long as systemd has it."""
    if SYSTEMD:
        run(["systemctl", "stop", mark.cgroup_parent])
    for folder in cgroups_named(mark.word):
        if folder.name == mark.word:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def stand_node(kind: str = "node", *, graph: Path | None = None, **keys: Any) -> Iterator[Node]:
    """A running node; everything that it made is gone afterwards, or this raises with what is left. `graph` is a folder
    for its graph root on a file system of the caller's."""
    mark = make_mark(kind)
    try:
        with contextlib.ExitStack() as stack:
            state = stack.enter_context(memory_disk(mark))
            graph = graph or mark.root / "graph"
            graph.mkdir()
            host = stack.enter_context(registry(mark.root / "registry"))
            images.push(host, "test/busybox", "latest", images.busybox_image())
            images.push(host, "test/pause", "latest", images.busybox_image(config={"Cmd": ["sleep", "2147483647"]}))
            network = stack.enter_context(stand_network(mark, mark.root / "cni"))
            keys = {"pod_sandbox_image": f"{host}/test/pause:latest", **keys}
            daemon = stack.enter_context(stand_daemon(mark, graph, state, network, **keys))
            node = Node(mark, daemon, network, host, graph, state, f"{host}/test/busybox:latest")
            stack.callback(node.reconnect)
            yield node
            if daemon.process is not None:
                node.clear_pods()
        _remove_root_cgroup(mark)
        left = find_leftovers(mark, folder_too=False)
        assert not left, left
    finally:
        clear(mark)
