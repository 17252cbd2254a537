"""One CRI engine behind a socket, and the life of a pod on it; every answer is checked."""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from bench import memory
from bench.clock import Samples
from bench.shape import container_config, make_mounts, pod_config
from tests.cri_client import connect
from tests.stand.cgroups import make_cgroup

UP = ("RunPodSandbox", "CreateContainer", "StartContainer")
DOWN = ("StopContainer(0)", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox")
EXEC = "ExecSync(true)"
CALL_SECONDS = 60


class WrongAnswer(Exception):
    """An engine answered, but not what it must."""


@dataclass(frozen=True)
class PodOptions:
    """What all pods of a run share."""

    word: str
    """The run's mark: in names, labels and cgroups."""
    folder: Path
    cgroup_parent: str
    runtime_handler: str = ""
    seccomp_default: bool = False


@dataclass
class Engine:
    name: str
    address: str
    metrics_url: str = ""
    image: str = ""
    pull_image: str = ""
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cri = connect(self.address)
        self.m = self.cri.m
        self.pid = memory.daemon_pid(Path(self.address.removeprefix("unix://")))

    def version(self) -> str:
        answer = self.cri.runtime.Version(self.m.VersionRequest(), timeout=CALL_SECONDS)
        return f"{answer.runtime_name} {answer.runtime_version}"

    @contextlib.contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """An error is one more line in `errors`; the run goes on."""
        try:
            yield
        except (grpc.RpcError, WrongAnswer, OSError) as error:
            self.errors.append(f"{what}: {describe(error)}")

    def clear(self, word: str) -> None:
        """Stop and remove every pod that bears the run's label, also one whose id never reached us."""
        chosen = self.m.PodSandboxFilter(label_selector={"bench-run": word})
        for pod in self.cri.runtime.ListPodSandbox(
            self.m.ListPodSandboxRequest(filter=chosen), timeout=CALL_SECONDS
        ).items:
            with self.noted(f"clearing pod {pod.id}"):
                self.cri.runtime.StopPodSandbox(
                    self.m.StopPodSandboxRequest(pod_sandbox_id=pod.id), timeout=CALL_SECONDS
                )
                self.cri.runtime.RemovePodSandbox(
                    self.m.RemovePodSandboxRequest(pod_sandbox_id=pod.id), timeout=CALL_SECONDS
                )

    def has_image(self, image: str) -> bool:
        request = self.m.ImageStatusRequest(image=self.m.ImageSpec(image=image))
        return bool(self.cri.image.ImageStatus(request, timeout=CALL_SECONDS).HasField("image"))

    def pull(self, image: str) -> None:
        answer = self.cri.image.PullImage(self.m.PullImageRequest(image=self.m.ImageSpec(image=image)), timeout=120)
        if not answer.image_ref:
            raise WrongAnswer("PullImage gives no image_ref")

    def remove_image(self, image: str) -> None:
        self.cri.image.RemoveImage(self.m.RemoveImageRequest(image=self.m.ImageSpec(image=image)), timeout=CALL_SECONDS)

    def loop_lag(self) -> LoopLag | None:
        """From our own metrics; another engine has no event loop to lag."""
        if not self.metrics_url:
            return None
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(self.metrics_url, timeout=10) as answer:
            return LoopLag.parse(answer.read().decode())


@dataclass(frozen=True)
class LoopLag:
    """Of all looks at the loop since the daemon started."""

    looks: float
    within: Mapping[float, float]
    """Looks that found it at most so many seconds late, by the limits that the daemon counts by."""

    def late(self, seconds: float) -> float:
        """Looks that found it later than that."""
        limit = max((limit for limit in self.within if limit <= seconds), default=None)
        return self.looks - (self.within[limit] if limit is not None else 0)

    @staticmethod
    def parse(text: str) -> LoopLag | None:
        """Reads the histogram `*loop_lag_seconds`."""
        buckets = {
            float(limit): float(value)
            for limit, value in re.findall(r'^\w*loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)', text, re.MULTILINE)
        }
        if not buckets:
            return None
        return LoopLag(buckets.pop(float("inf")), buckets)


def describe(error: BaseException) -> str:
    if isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"


class EnginePod:
    """One pod with one or more containers; `up`, `execute` and `down` note how long each call took."""

    def __init__(self, engine: Engine, options: PodOptions, name: str) -> None:
        self._engine = engine
        self._options = options
        self._name = f"{options.word}-{engine.name}-{name}"
        self._label = ("bench-run", options.word)
        self._cgroup = f"{options.cgroup_parent}/pod-{engine.name}-{name}"
        self._logs = options.folder / "logs" / self._name
        self._mounts = make_mounts(options.folder / "volumes" / self._name)
        self._config: Any = None
        self.pod_id = ""
        self.container_ids: list[str] = []

    @property
    def ids(self) -> list[str]:
        return [self.pod_id, *self.container_ids]

    def up(self, samples: Samples) -> None:
        engine, m = self._engine, self._engine.m
        make_cgroup(self._cgroup)
        self._logs.mkdir(parents=True, exist_ok=True)
        self._config = pod_config(
            m,
            name=self._name,
            uid=f"uid-{self._name}",
            label=self._label,
            cgroup=self._cgroup,
            logs=self._logs,
            seccomp_default=self._options.seccomp_default,
        )
        request = m.RunPodSandboxRequest(config=self._config, runtime_handler=self._options.runtime_handler)
        with samples.timed("RunPodSandbox"):
            self.pod_id = engine.cri.runtime.RunPodSandbox(request, timeout=CALL_SECONDS).pod_sandbox_id
        self.add_container(samples)

    def add_container(self, samples: Samples) -> None:
        engine, m = self._engine, self._engine.m
        config = container_config(
            m,
            name=f"c{len(self.container_ids)}",
            image=engine.image,
            label=self._label,
            mounts=self._mounts,
            seccomp_default=self._options.seccomp_default,
        )
        request = m.CreateContainerRequest(pod_sandbox_id=self.pod_id, config=config, sandbox_config=self._config)
        with samples.timed("CreateContainer"):
            container = engine.cri.runtime.CreateContainer(request, timeout=CALL_SECONDS).container_id
        self.container_ids.append(container)
        start = m.StartContainerRequest(container_id=container)
        with samples.timed("StartContainer"):
            engine.cri.runtime.StartContainer(start, timeout=CALL_SECONDS)

    def remove_extra_containers(self) -> None:
        """All but the first."""
        runtime, m = self._engine.cri.runtime, self._engine.m
        while len(self.container_ids) > 1:
            container = self.container_ids.pop()
            runtime.StopContainer(m.StopContainerRequest(container_id=container, timeout=0), timeout=CALL_SECONDS)
            runtime.RemoveContainer(m.RemoveContainerRequest(container_id=container), timeout=CALL_SECONDS)

    def check_running(self, samples: Samples) -> None:
        """Statuses, the pod's address, the log line."""
        runtime, m = self._engine.cri.runtime, self._engine.m
        with samples.timed("PodSandboxStatus"):
            pod = runtime.PodSandboxStatus(m.PodSandboxStatusRequest(pod_sandbox_id=self.pod_id), timeout=CALL_SECONDS)
        if pod.status.state != m.SANDBOX_READY or not pod.status.network.ip:
            raise WrongAnswer(f"pod {self._name} is not ready with an address: {pod.status}")
        for container in self.container_ids:
            with samples.timed("ContainerStatus"):
                answer = runtime.ContainerStatus(m.ContainerStatusRequest(container_id=container), timeout=CALL_SECONDS)
            if answer.status.state != m.CONTAINER_RUNNING:
                raise WrongAnswer(f"container of {self._name} does not run: {answer.status}")
        log = self._logs / "c0.log"
        deadline = time.monotonic() + 5
        while not (log.exists() and "stdout F ready" in log.read_text(encoding="utf-8")):
            if time.monotonic() > deadline:
                raise WrongAnswer(f"{log.name} of {self._name} lacks the line that the container wrote")
            time.sleep(0.005)

    def execute(self, samples: Samples) -> None:
        engine, m = self._engine, self._engine.m
        request = m.ExecSyncRequest(container_id=self.container_ids[0], cmd=["true"], timeout=30)
        with samples.timed(EXEC):
            answer = engine.cri.runtime.ExecSync(request, timeout=CALL_SECONDS)
        if answer.exit_code != 0:
            raise WrongAnswer(f"true exits {answer.exit_code}")

    def exec_url(self, *command: str) -> str:
        m = self._engine.m
        request = m.ExecRequest(
            container_id=self.container_ids[0], cmd=list(command), stdin=True, stdout=True, stderr=True
        )
        return str(self._engine.cri.runtime.Exec(request, timeout=CALL_SECONDS).url)

    def address(self) -> str:
        m = self._engine.m
        request = m.PodSandboxStatusRequest(pod_sandbox_id=self.pod_id)
        return str(self._engine.cri.runtime.PodSandboxStatus(request, timeout=CALL_SECONDS).status.network.ip)

    def forward_url(self, port: int) -> str:
        m = self._engine.m
        request = m.PortForwardRequest(pod_sandbox_id=self.pod_id, port=[port])
        return str(self._engine.cri.runtime.PortForward(request, timeout=CALL_SECONDS).url)

    def down(self, samples: Samples) -> None:
        runtime, m = self._engine.cri.runtime, self._engine.m
        for container in self.container_ids:
            with samples.timed("StopContainer(0)"):
                runtime.StopContainer(m.StopContainerRequest(container_id=container, timeout=0), timeout=CALL_SECONDS)
        for container in self.container_ids:
            with samples.timed("RemoveContainer"):
                runtime.RemoveContainer(m.RemoveContainerRequest(container_id=container), timeout=CALL_SECONDS)
        with samples.timed("StopPodSandbox"):
            runtime.StopPodSandbox(m.StopPodSandboxRequest(pod_sandbox_id=self.pod_id), timeout=CALL_SECONDS)
        with samples.timed("RemovePodSandbox"):
            runtime.RemovePodSandbox(m.RemovePodSandboxRequest(pod_sandbox_id=self.pod_id), timeout=CALL_SECONDS)

    def check_gone(self) -> None:
        m = self._engine.m
        try:
            self._engine.cri.runtime.PodSandboxStatus(
                m.PodSandboxStatusRequest(pod_sandbox_id=self.pod_id), timeout=CALL_SECONDS
            )
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
        else:
            raise WrongAnswer(f"pod {self._name} is still there after its removal")

    def runtime_spec(self) -> dict[str, Any]:
        """The OCI spec as the verbose status shows it; empty where the engine does not."""
        m = self._engine.m
        request = m.ContainerStatusRequest(container_id=self.container_ids[0], verbose=True)
        info = self._engine.cri.runtime.ContainerStatus(request, timeout=CALL_SECONDS).info
        for value in info.values():
            with contextlib.suppress(ValueError):
                document = json.loads(value)
                spec = document.get("runtimeSpec", document) if isinstance(document, dict) else {}
                if isinstance(spec, dict) and "linux" in spec:
                    return spec
        return {}
