"""The engine, wired as the daemon wires it, on fakes that outlive it as the world outlives a daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import Adapters
from isulad_py.daemon.services import Services, build_services
from isulad_py.host.tasks import TaskOwner
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ImageSpec
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodConfig, PodMetadata
from isulad_py.model.security import NamespaceMode, NamespaceOptions, PodSecurity
from tests.fakes.apparmor import FakeProfiles
from tests.fakes.checkpoints import FakeCheckpointer, MemoryCheckpoints
from tests.fakes.clock import FakeClock
from tests.fakes.facts import host_facts
from tests.fakes.hostfiles import FakeHostFiles
from tests.fakes.identity import FakeIdentities
from tests.fakes.images import FakeArchives, FakeImageSource
from tests.fakes.injections import FakeInjections
from tests.fakes.network import FakeNetwork
from tests.fakes.records import MemoryRecords
from tests.fakes.runtime import FakeRuntime
from tests.fakes.sandbox import FakeEnvironments
from tests.fakes.stats import FakeSampler
from tests.fakes.storage import MemoryLayers, MemoryRootFilesystems
from tests.fakes.streams import FakeStreams

IMAGE = "busybox:1"


class World:
    """What lasts while daemons come and go."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.records = MemoryRecords()
        self.layers = MemoryLayers()
        self.rootfs = MemoryRootFilesystems(self.layers)
        self.source = FakeImageSource(self.layers)
        self.archives = FakeArchives(self.layers)
        self.source.offer(IMAGE)
        self.source.offer("registry.k8s.io/pause:3.10", content="pause")
        self.network = FakeNetwork()
        self.runtime = FakeRuntime(now_ns=self.clock.now_ns)
        self.checkpointer = FakeCheckpointer(self.runtime)
        self.checkpoints = MemoryCheckpoints()
        self.streams: Any = FakeStreams(self.runtime)
        self.environments = FakeEnvironments()
        self.sampler = FakeSampler()
        self.hostfiles = FakeHostFiles()
        self.injections = FakeInjections()
        self.profiles = FakeProfiles()
        self.host: dict[str, Any] = {}
        self.boot = 1
        self.handler = RuntimeHandler(name="runc")
        self.deaths: list[tuple[str, BaseException]] = []

    def reboot(self) -> None:
        self.boot += 1
        self.runtime.reboot()
        self.environments.reboot()

    @asynccontextmanager
    async def daemon(self, *, recover: bool = True, patience_seconds: float = 60, **config: Any) -> AsyncIterator[Node]:
        """A daemon's engine; leaving the block is its sudden death as far as records go."""
        tasks = TaskOwner(on_failure=lambda name, error: self.deaths.append((name, error)))
        adapters = Adapters(
            clock=cast("Any", self.clock),
            facts=host_facts(boot_id=f"boot-{self.boot}", **self.host),
            handlers={"runc": self.handler},
            records=cast("Any", self.records),
            layers=cast("Any", self.layers),
            rootfs=cast("Any", self.rootfs),
            source=cast("Any", self.source),
            archives=cast("Any", self.archives),
            network=cast("Any", self.network),
            runtime=cast("Any", self.runtime),
            streams=self.streams,
            checkpointer=cast("Any", self.checkpointer),
            checkpoint_files=cast("Any", self.checkpoints),
            environments=cast("Any", self.environments),
            sampler=cast("Any", self.sampler),
            hostfiles=cast("Any", self.hostfiles),
            identities=cast("Any", FakeIdentities()),
            injections=cast("Any", self.injections),
            profiles=cast("Any", self.profiles),
        )
        services = build_services(Config(**config), adapters, tasks)
        node = Node(self, services, tasks)
        try:
            if recover:
                await services.recovery.run()
                await services.leftovers.clear(patience_seconds)
                await services.sweeper.sweep()
            yield node
            assert self.deaths == []
        finally:
            await tasks.close()

    def traces(self) -> dict[str, object]:
        """All that pods leave in the world; every value is empty on a node without pods."""
        return {
            "records": [row for row in self.records.rows if row[0] != "image"],
            "containers": list(self.runtime.containers) + list(self.runtime.half_made),
            "environments": list(self.environments.requests),
            "roots": list(self.rootfs.requests),
            "network": list(self.network.attached),
            "views": list(self.layers.mounted_views),
            "checkpoints": [*self.checkpoints.kept, *self.checkpoints.parts],
        }


class Node:
    def __init__(self, world: World, services: Services, tasks: TaskOwner) -> None:
        self.world = world
        self.tasks = tasks
        self.services = services

    async def pull(self) -> None:
        await self.services.images.pull(ImageSpec(image=IMAGE), None)

    async def run_pod(self, name: str = "web", *, pid: NamespaceMode = NamespaceMode.CONTAINER, **config: Any) -> PodId:
        return await self.services.pods.run(pod_config(name, pid=pid, **config), "")

    async def create(self, pod_id: str, *command: str, name: str = "main", **config: Any) -> ContainerId:
        return await self.services.containers.create(pod_id, container_config(*command, name=name, **config), None)

    async def run_container(self, pod_id: str, *command: str, name: str = "main", **config: Any) -> ContainerId:
        container_id = await self.create(pod_id, *command, name=name, **config)
        await self.services.containers.start(container_id)
        return container_id

    async def until_exited(self, container_id: str) -> None:
        """Lets the loop run until the end is on record."""
        for _ in range(1000):
            if self.services.queries.container(container_id).exit is not None:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"container {container_id} has no end on record")


def pod_config(name: str = "web", *, pid: NamespaceMode = NamespaceMode.CONTAINER, **fields: Any) -> PodConfig:
    security = fields.pop("security", PodSecurity(namespaces=NamespaceOptions(pid=pid)))
    return PodConfig(
        metadata=PodMetadata(name=name, namespace="default", uid=f"uid-{name}"),
        log_directory="/var/log/pods",
        security=security,
        **fields,
    )


def container_config(*command: str, name: str = "main", **fields: Any) -> ContainerConfig:
    return ContainerConfig(
        metadata=ContainerMetadata(name=name),
        image=fields.pop("image", ImageSpec(image=IMAGE)),
        command=command or ("server",),
        log_path=f"{name}.log",
        **fields,
    )
