"""The life of one pod, told by a CRI client: each step calls, checks the answer and says what came of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.screen import note, size, step
from tests.cri_client import Cri
from tests.stand.cgroups import make_cgroup
from tests.stand.ending import uninterrupted
from tests.stand.mark import Mark

PAGE = b"a page out of the pod\n"
SCRIPT = """\
trap 'echo "asked to stop: good bye"; exit 0' TERM
echo "serving on $(ip -o -4 address show eth0 | awk '{print $4}')"
httpd -f -v -p 80 -h /www &
wait
"""
SECONDS = 60


class WrongAnswer(Exception):
    """The engine answered, but not what it must."""


@dataclass
class Pod:
    """What is known of the pod while the story goes on."""

    config: Any
    logs: Path
    id: str = ""
    address: str = ""
    container: str = ""
    process: int = 0

    @property
    def log(self) -> Path:
        return self.logs / "web.log"


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise WrongAnswer(what)


def wait_for(what: str, holds: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        expect(time.monotonic() < deadline, f"{what} does not come about within {seconds:g} s")
        time.sleep(0.01)


def plan_pod(cri: Cri, mark: Mark) -> Pod:
    """The pod as a kubelet would ask for it; its cgroup is made here, because a kubelet makes it."""
    m = cri.m
    cgroup = f"{mark.cgroup_parent}/pod-demo"
    make_cgroup(cgroup)
    logs = mark.root / "logs"
    logs.mkdir()
    security = m.LinuxSandboxSecurityContext(
        namespace_options=m.NamespaceOption(network=m.POD, pid=m.CONTAINER, ipc=m.POD),
        seccomp=m.SecurityProfile(profile_type=0),
    )
    config = m.PodSandboxConfig(
        metadata=m.PodSandboxMetadata(name="demo", namespace="default", uid=mark.word),
        hostname="demo",
        log_directory=str(logs),
        labels={"app": "demo"},
        linux=m.LinuxPodSandboxConfig(cgroup_parent=cgroup, security_context=security),
    )
    return Pod(config, logs)


def container_config(cri: Cri, image: str) -> Any:
    m = cri.m
    return m.ContainerConfig(
        metadata=m.ContainerMetadata(name="web"),
        image=m.ImageSpec(image=image),
        command=["/bin/sh", "-c", SCRIPT],
        labels={"app": "demo"},
        log_path="web.log",
        linux=m.LinuxContainerConfig(
            resources=m.LinuxContainerResources(cpu_shares=256, memory_limit_in_bytes=64 * 1024 * 1024),
            security_context=m.LinuxContainerSecurityContext(
                namespace_options=m.NamespaceOption(network=m.POD, pid=m.CONTAINER, ipc=m.POD),
                seccomp=m.SecurityProfile(profile_type=0),
                masked_paths=["/proc/kcore", "/proc/keys"],
                readonly_paths=["/proc/sys"],
            ),
        ),
    )


@contextmanager
def pulled(cri: Cri, image: str) -> Iterator[None]:
    m = cri.m
    spec = m.ImageSpec(image=image)
    with step("pull") as shown:
        reference = cri.image.PullImage(m.PullImageRequest(image=spec), timeout=SECONDS).image_ref
        found = cri.image.ImageStatus(m.ImageStatusRequest(image=spec), timeout=SECONDS).image
        expect(found.id == reference, f"the image's id {found.id} is not what PullImage gave, {reference}")
        shown.tell(f"{image}")
        shown.tell(f"id {short(found.id)}, {size(found.size)}")
    try:
        yield
    finally:
        with step("image") as shown:
            shown.tell("removed")
            cri.image.RemoveImage(m.RemoveImageRequest(image=spec), timeout=SECONDS)


@contextmanager
def running(cri: Cri, pod: Pod, image: str) -> Iterator[None]:
    """From RunPodSandbox to RemovePodSandbox; what was made is removed however the inside ends."""
    with ExitStack() as undo:
        _run_pod(cri, pod, undo)
        _run_container(cri, pod, image, undo)
        yield


def _run_pod(cri: Cri, pod: Pod, undo: ExitStack) -> None:
    m = cri.m
    with step("pod") as shown, uninterrupted():
        pod.id = cri.runtime.RunPodSandbox(m.RunPodSandboxRequest(config=pod.config), timeout=SECONDS).pod_sandbox_id
        undo.callback(_remove_pod, cri, pod)
        status = cri.runtime.PodSandboxStatus(m.PodSandboxStatusRequest(pod_sandbox_id=pod.id), timeout=SECONDS).status
        pod.address = status.network.ip
        expect(status.state == m.SANDBOX_READY, "the pod is not ready")
        expect(bool(pod.address), "the pod has no address")
        shown.tell(f"id {short(pod.id)}, IP {pod.address}")


def _run_container(cri: Cri, pod: Pod, image: str, undo: ExitStack) -> None:
    m = cri.m
    request = m.CreateContainerRequest(
        pod_sandbox_id=pod.id, config=container_config(cri, image), sandbox_config=pod.config
    )
    with step("create") as shown, uninterrupted():
        pod.container = cri.runtime.CreateContainer(request, timeout=SECONDS).container_id
        undo.callback(_remove_container, cri, pod)
        shown.tell(f"container {short(pod.container)}")
    with step("start") as shown:
        cri.runtime.StartContainer(m.StartContainerRequest(container_id=pod.container), timeout=SECONDS)
        pod.process = first_process(cri, pod)
        shown.tell(f"{state_of(cri, pod)}, process {pod.process}")


def state_of(cri: Cri, pod: Pod) -> str:
    """Raises WrongAnswer where the container does not run."""
    m = cri.m
    request = m.ContainerStatusRequest(container_id=pod.container)
    status = cri.runtime.ContainerStatus(request, timeout=SECONDS).status
    expect(status.state == m.CONTAINER_RUNNING, f"the container does not run: {status.reason} {status.message}")
    return f"running since {time.strftime('%H:%M:%S', time.localtime(status.started_at / 1e9))}"


def first_process(cri: Cri, pod: Pod) -> int:
    """The number of the container's first process, out of the verbose status."""
    m = cri.m
    request = m.ContainerStatusRequest(container_id=pod.container, verbose=True)
    for value in cri.runtime.ContainerStatus(request, timeout=SECONDS).info.values():
        with contextlib.suppress(ValueError):
            document = json.loads(value)
            if isinstance(document, dict) and "pid" in document:
                return int(document["pid"])
    raise WrongAnswer("the verbose status has no pid")


def fetch_page(pod: Pod) -> None:
    with step("http") as shown:
        answer = b""

        def served() -> bool:
            nonlocal answer
            connection = http.client.HTTPConnection(pod.address, 80, timeout=2)
            try:
                connection.request("GET", "/index.html")
                answer = connection.getresponse().read()
            except OSError:
                return False
            finally:
                connection.close()
            return True

        wait_for("an answer over HTTP", served)
        expect(answer == PAGE, f"the page is {answer!r}")
        shown.tell(f'GET http://{pod.address}/ says "{answer.decode().strip()}"')


def execute(cri: Cri, pod: Pod, *command: str) -> None:
    m = cri.m
    with step("exec") as shown:
        request = m.ExecSyncRequest(container_id=pod.container, cmd=command, timeout=10)
        answer = cri.runtime.ExecSync(request, timeout=SECONDS)
        expect(answer.exit_code == 0, f"{command[0]} exits {answer.exit_code}: {answer.stderr!r}")
        shown.tell(f"{' '.join(command)}: exit code {answer.exit_code}")
        for line in answer.stdout.decode(errors="replace").splitlines()[:4]:
            shown.tell(f"  {line}")


def show_log(pod: Pod, *, until: str, times: int = 1, last: int = 0) -> None:
    """The log as it is on disk, in CRI's format, or its last lines; waits until the text is there so often."""
    with step("log") as shown:
        wait_for(
            f"the text {until!r} in the log", lambda: pod.log.exists() and pod.log.read_text().count(until) >= times
        )
        for line in pod.log.read_text(encoding="utf-8").splitlines()[-last:]:
            moment, stream, tag, text = line.split(" ", 3)
            shown.tell(f"{moment[11:23]} {stream} {tag} {text}")


def show_stats(cri: Cri, pod: Pod) -> None:
    m = cri.m
    with step("stats") as shown:
        request = m.ContainerStatsRequest(container_id=pod.container)
        stats = cri.runtime.ContainerStats(request, timeout=SECONDS).stats
        expect(stats.memory.working_set_bytes.value > 0, "the container uses no memory")
        used = stats.cpu.usage_core_nano_seconds.value / 1e6
        shown.tell(f"CPU time {used:.1f} ms, memory {size(stats.memory.working_set_bytes.value)}")
        layer = stats.writable_layer
        shown.tell(f"writable layer {size(layer.used_bytes.value)}, {layer.inodes_used.value} inodes")


def _remove_container(cri: Cri, pod: Pod) -> None:
    m = cri.m
    with step("stop") as shown:
        stop = m.StopContainerRequest(container_id=pod.container, timeout=10)
        cri.runtime.StopContainer(stop, timeout=SECONDS)
        request = m.ContainerStatusRequest(container_id=pod.container)
        status = cri.runtime.ContainerStatus(request, timeout=SECONDS).status
        shown.tell(f"exited: code {status.exit_code}, reason {status.reason}")
        shown.tell(f"last log line: {last_log_line(pod)}")
    with step("remove"):
        cri.runtime.RemoveContainer(m.RemoveContainerRequest(container_id=pod.container), timeout=SECONDS)


def last_log_line(pod: Pod) -> str:
    lines = pod.log.read_text(encoding="utf-8").splitlines() if pod.log.exists() else []
    return lines[-1].split(" ", 3)[-1] if lines else "none"


def _remove_pod(cri: Cri, pod: Pod) -> None:
    m = cri.m
    with step("stop pod") as shown:
        cri.runtime.StopPodSandbox(m.StopPodSandboxRequest(pod_sandbox_id=pod.id), timeout=SECONDS)
        shown.tell("processes, address and namespaces are released")
    with step("remove pod"):
        cri.runtime.RemovePodSandbox(m.RemovePodSandboxRequest(pod_sandbox_id=pod.id), timeout=SECONDS)


def wait_for_enter(address: str) -> None:
    note("The pod stays until you press Enter. From another terminal:")
    note(f"crictl --runtime-endpoint {address} ps")
    try:
        input()
    except EOFError:
        note("There is nobody at the terminal; going on.")


def short(identifier: str) -> str:
    """As crictl shows them."""
    return identifier.removeprefix("sha256:")[:13]
