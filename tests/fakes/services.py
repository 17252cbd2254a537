"""The engine as `wire` sees it, in memory: the read side is the real one, the rest are small services with state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from isulad_py.engine.events import Events, Subscription
from isulad_py.engine.exec import Exec
from isulad_py.engine.pod_checkpoints import RestoredPod
from isulad_py.engine.pod_metrics import ContainerReading, PodMetrics, PodReading
from isulad_py.engine.queries import ContainerFilter, PodFilter, Queries
from isulad_py.engine.readiness import Condition, EngineStatus
from isulad_py.engine.registry import Registry
from isulad_py.engine.sessions import Sessions, Tokens
from isulad_py.model.container import ContainerConfig, ContainerRecord, ExitFact, ImageSpec
from isulad_py.model.events import EventKind
from isulad_py.model.ids import ContainerId, ImageId, PodId, new_id
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.network import NetworkResult
from isulad_py.model.pod import PodConfig, PodRecord
from isulad_py.model.resources import Resources
from isulad_py.model.stats import CgroupSample, ContainerSample, FilesystemUsage, InterfaceSample, PodSample
from isulad_py.ports.runtime import ExecResult, HandlerFeatures
from isulad_py.wire.cri.services import Services
from tests.fakes.clock import FakeClock
from tests.fakes.faults import Faults
from tests.fakes.records import MemoryRecords
from tests.readings import FULL


class FakeEngine:
    """Everything that a servicer can reach. `faults` knows each call by its service and name: `pods.run`.

    `cancelled` has the names of calls that were cancelled while they waited.
    """

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.registry = Registry(records=MemoryRecords())
        self.faults = Faults()
        self.cancelled: list[str] = []
        self.images: dict[str, ImageRecord] = {}
        self.credentials: list[Credentials | None] = []
        self.commands: list[tuple[tuple[str, ...], float | None]] = []
        self.exec_result = ExecResult(exit_code=0, stdout=b"", stderr=b"")
        self.grace_seconds: list[float] = []
        self.pod_cidr = ""
        self.subscribed = 0
        self.checkpoints: list[tuple[object, ...]] = []
        """Arguments of every call that took one."""
        self.tokens = Tokens(clock=self.clock)
        self.events = Events(registry=self.registry, clock=self.clock)

    async def at(self, step: str) -> None:
        try:
            await self.faults.at(step)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.cancelled.append(step)
            raise

    def services(self) -> Services:
        queries: Any = _Queries(self)
        exec_: Any = _Exec(self)
        parts: dict[str, Any] = {
            "pods": _Pods(self),
            "containers": _Containers(self),
            "queries": queries,
            "exec": exec_,
            "sessions": Sessions(
                registry=self.registry, exec_=exec_, tokens=self.tokens, base_url="http://127.0.0.1:1"
            ),
            "images": _Images(self),
            "stats": _Stats(self, queries),
            "metrics": _Metrics(self, queries),
            "events": _Events(self),
            "readiness": _Readiness(self),
            "network": _Network(self),
            "checkpoints": _Checkpoints(self),
            "pod_checkpoints": _PodCheckpoints(self),
        }
        return Services(clock=self.clock, systemd_cgroup=False, **parts)

    def add_pod(self, name: str = "web", **facts: Any) -> PodRecord:
        config = facts.pop("config", None) or msgspec.convert({"metadata": {"name": name}}, PodConfig)
        now = self.clock.now_ns()
        record = PodRecord(
            **{
                "id": PodId(new_id()),
                "config": config,
                "created_at": now,
                "ready_at": now,
                "network": NetworkResult(ips=("10.9.0.2",)),
                **facts,
            }
        )
        self.registry.pods[record.id] = record
        return record

    def add_container(self, pod: PodRecord, name: str = "main", **facts: Any) -> ContainerRecord:
        document = {"metadata": {"name": name}, "image": {"image": "busybox"}}
        config = facts.pop("config", None) or msgspec.convert(document, ContainerConfig)
        record = ContainerRecord(
            **{
                "id": ContainerId(new_id()),
                "pod_id": pod.id,
                "config": config,
                "created_at": self.clock.now_ns(),
                "image_id": "sha256:1",
                "image_ref": "sha256:1",
                "resources": config.resources,
                **facts,
            }
        )
        self.registry.containers[record.id] = record
        return record

    def change(self, record: PodRecord | ContainerRecord, **facts: Any) -> None:
        table: Any = self.registry.pods if isinstance(record, PodRecord) else self.registry.containers
        table[record.id] = msgspec.structs.replace(table[record.id], **facts)


class _Queries(Queries):
    def __init__(self, engine: FakeEngine) -> None:
        super().__init__(registry=engine.registry, runtime=None)  # type: ignore[arg-type]  # verbose calls are ours
        self._engine = engine

    async def pod_info(self, pod_id: str) -> dict[str, str]:
        await self._engine.at("queries.pod_info")
        return {"info": f'{{"pod":"{pod_id}"}}'}

    async def container_info(self, container_id: str) -> dict[str, str]:
        await self._engine.at("queries.container_info")
        return {"info": f'{{"container":"{container_id}"}}'}


class _Pods:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def run(self, config: PodConfig, runtime_handler: str) -> PodId:
        await self._engine.at("pods.run")
        record = self._engine.add_pod(config=config, runtime_handler=runtime_handler)
        self._engine.events.announce(EventKind.CREATED, record.id, record.id)
        return record.id

    async def stop(self, pod_id: str) -> None:
        await self._engine.at("pods.stop")
        record = self._engine.registry.pods.find(pod_id)
        if record is not None:
            self._engine.change(record, stopping_at=self._engine.clock.now_ns())

    async def remove(self, pod_id: str) -> None:
        await self._engine.at("pods.remove")
        record = self._engine.registry.pods.find(pod_id)
        if record is not None:
            del self._engine.registry.pods[record.id]

    async def update_resources(self, pod_id: str, *, overhead: Resources | None, resources: Resources | None) -> None:
        await self._engine.at("pods.update_resources")
        record = self._engine.registry.pods.require(pod_id)
        self._engine.change(record, overhead=overhead or record.overhead, resources=resources or record.resources)


class _Containers:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._table = engine.registry.containers

    async def create(self, pod_id: str, config: ContainerConfig, pod_config: PodConfig | None) -> ContainerId:
        await self._engine.at("containers.create")
        return self._engine.add_container(self._engine.registry.pods.require(pod_id), config=config).id

    async def start(self, container_id: str) -> None:
        await self._engine.at("containers.start")
        record = self._table.require(container_id)
        self._engine.change(record, started_at=self._engine.clock.now_ns())
        self._engine.events.announce(EventKind.STARTED, record.id, record.pod_id)

    async def stop(self, container_id: str, grace_seconds: float) -> None:
        await self._engine.at("containers.stop")
        self._engine.grace_seconds.append(grace_seconds)
        record = self._table.find(container_id)
        if record is not None:
            self._engine.change(record, exit=ExitFact(exit_code=143, finished_at=self._engine.clock.now_ns()))

    async def remove(self, container_id: str) -> None:
        await self._engine.at("containers.remove")
        record = self._table.find(container_id)
        if record is not None:
            del self._table[record.id]

    async def update(self, container_id: str, resources: Resources) -> None:
        await self._engine.at("containers.update")
        self._engine.change(self._table.require(container_id), resources=resources)

    async def reopen_log(self, container_id: str) -> None:
        await self._engine.at("containers.reopen_log")
        self._table.require(container_id)


class _Exec(Exec):
    def __init__(self, engine: FakeEngine) -> None:
        super().__init__(registry=engine.registry, runtime=None, specs=None)  # type: ignore[arg-type]  # runs nothing
        self._engine = engine

    async def exec_sync(
        self, container_id: str, cmd: tuple[str, ...], timeout_seconds: float | None = None
    ) -> ExecResult:
        self._engine.commands.append((cmd, timeout_seconds))
        await self._engine.at("exec.exec_sync")
        self._engine.registry.containers.require(container_id)
        return self._engine.exec_result


class _Images:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    def list(self, image: str = "") -> list[ImageRecord]:
        return [record for name, record in self._engine.images.items() if image in {"", name}]

    def status(self, image: str) -> ImageRecord | None:
        return self._engine.images.get(image)

    async def pull(self, spec: ImageSpec, credentials: Credentials | None) -> ImageRecord:
        self._engine.credentials.append(credentials)
        await self._engine.at("images.pull")
        record = ImageRecord(id=ImageId("sha256:1"), repo_tags=(spec.image,), size_bytes=5)
        self._engine.images[spec.image] = record
        return record

    async def remove(self, image: str) -> None:
        await self._engine.at("images.remove")
        self._engine.images.pop(image, None)

    async def usage(self) -> tuple[FilesystemUsage, FilesystemUsage]:
        await self._engine.at("images.usage")
        return (
            FilesystemUsage(timestamp=1, mountpoint="/graph/images", used_bytes=2, inodes_used=3),
            FilesystemUsage(timestamp=1, mountpoint="/graph/containers", used_bytes=4, inodes_used=5),
        )

    def info(self, record: ImageRecord) -> dict[str, str]:
        return {"info": f'{{"image":"{record.id}"}}'}


class _Stats:
    def __init__(self, engine: FakeEngine, queries: Queries) -> None:
        self._engine = engine
        self._queries = queries

    async def container(self, container_id: str) -> tuple[ContainerRecord, ContainerSample]:
        await self._engine.at("stats.container")
        return self._sample(self._queries.container(container_id))

    async def containers(self, wanted: ContainerFilter) -> list[tuple[ContainerRecord, ContainerSample]]:
        await self._engine.at("stats.containers")
        return [self._sample(record) for record in self._queries.containers(wanted)]

    def _sample(self, record: ContainerRecord) -> tuple[ContainerRecord, ContainerSample]:
        cgroup = CgroupSample(timestamp=self._engine.clock.now_ns(), cpu_usage_ns=7, memory_working_set_bytes=8)
        return record, ContainerSample(container_id=record.id, cgroup=cgroup)

    async def pod(self, pod_id: str) -> tuple[PodRecord, PodSample]:
        await self._engine.at("stats.pod")
        return self._pod_sample(self._queries.pod(pod_id))

    async def pods(self, wanted: PodFilter) -> list[tuple[PodRecord, PodSample]]:
        await self._engine.at("stats.pods")
        return [self._pod_sample(record) for record in self._queries.pods(wanted)]

    def _pod_sample(self, record: PodRecord) -> tuple[PodRecord, PodSample]:
        parts = tuple(self._sample(container)[1] for container in self._queries.containers_of(record.id))
        cgroup = CgroupSample(timestamp=self._engine.clock.now_ns(), cpu_usage_ns=9)
        return record, PodSample(pod_id=record.id, cgroup=cgroup, containers=parts)


class _Metrics:
    descriptors = staticmethod(PodMetrics.descriptors)

    def __init__(self, engine: FakeEngine, queries: Queries) -> None:
        self._engine = engine
        self._queries = queries

    async def read(self) -> list[PodReading]:
        await self._engine.at("metrics.read")
        return [self._pod(pod) for pod in self._queries.pods(PodFilter())]

    def _pod(self, pod: PodRecord) -> PodReading:
        containers = [
            ContainerReading(id=record.id, timestamp=2, labels=("", "", "", record.id, "", ""), reading=FULL)
            for record in self._queries.containers_of(pod.id)
        ]
        interfaces = (InterfaceSample(name="eth0", rx_bytes=5),)
        labels = ("", "", "", pod.id, "", "")
        return PodReading(id=pod.id, timestamp=1, labels=labels, interfaces=interfaces, containers=tuple(containers))


class _Events:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        with self._engine.events.subscribe() as subscription:
            self._engine.subscribed += 1
            try:
                yield subscription
            finally:
                self._engine.subscribed -= 1


class _Readiness:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def status(self) -> EngineStatus:
        await self._engine.at("readiness.status")
        return EngineStatus(
            runtime_ready=Condition(status=True),
            network_ready=Condition(status=False, reason="NetworkPluginNotReady", message="no configuration"),
            handlers=(HandlerFeatures(name="", user_namespaces=True), HandlerFeatures(name="runc")),
        )

    async def info(self) -> dict[str, str]:
        return {"config": "{}"}


class _Checkpoints:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def container(self, container_id: str, location: str, timeout_seconds: float) -> None:
        await self._engine.at("checkpoints.container")
        record = self._engine.registry.containers.require(container_id)
        self._engine.checkpoints.append((record.id, location, timeout_seconds))


class _PodCheckpoints:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def checkpoint(
        self, pod_id: str, directory: str, container_ids: Sequence[str], options: Mapping[str, str]
    ) -> None:
        await self._engine.at("pod_checkpoints.checkpoint")
        record = self._engine.registry.pods.require(pod_id)
        self._engine.checkpoints.append((record.id, directory, tuple(container_ids), dict(options)))

    async def restore(
        self,
        directory: str,
        config: PodConfig | None,
        runtime_handler: str,
        configs: Sequence[ContainerConfig],
        options: Mapping[str, str],
    ) -> RestoredPod:
        await self._engine.at("pod_checkpoints.restore")
        assert config is not None
        self._engine.checkpoints.append((directory, runtime_handler, dict(options)))
        pod = self._engine.add_pod(config=config, runtime_handler=runtime_handler)
        made = [(each.metadata.name, self._engine.add_container(pod, config=each).id) for each in configs]
        return RestoredPod(id=pod.id, containers=tuple(made))


class _Network:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def set_pod_cidr(self, cidr: str) -> None:
        await self._engine.at("network.set_pod_cidr")
        self._engine.pod_cidr = cidr
