"""A container whose root is a directory of the host's, from the engine down to runc (root)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from isulad_py.config.schema import Config
from isulad_py.daemon.adapters import open_adapters
from isulad_py.daemon.lifecycle import Lifecycle
from isulad_py.daemon.services import Services, build_services
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerState
from isulad_py.model.errors import FailedPrecondition
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodConfig, PodMetadata
from isulad_py.model.security import NamespaceMode, NamespaceOptions, PodSecurity
from tests.stand.cgroups import cgroups_named, remove_cgroup
from tests.stand.disk import unmount_below
from tests.stand.mark import Mark, make_mark
from tests.stand.rootfs import make_rootfs

pytestmark = pytest.mark.root


@pytest.fixture
def mark() -> object:
    mark = make_mark("ext")
    make_rootfs(mark.root / "root")
    yield mark
    unmount_below(mark.root)
    for folder in sorted(cgroups_named(mark.word), key=lambda path: -len(path.parts)):
        remove_cgroup(folder)
    shutil.rmtree(mark.root)


@asynccontextmanager
async def engine(mark: Mark) -> AsyncIterator[Services]:
    config = Config(
        graph=str(mark.root / "graph"),
        state=str(mark.root / "state"),
        cgroup_parent=mark.cgroup_parent,
        cni_conf_dir=str(mark.root / "cni"),
    )
    for folder in (config.graph, config.state, config.cni_conf_dir):
        Path(folder).mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:
        lifecycle = Lifecycle(stack=stack)
        adapters = await open_adapters(config, lifecycle, environment={}, measure=lambda *_: nullcontext())
        services = build_services(config, adapters, lifecycle.background)
        await services.recovery.run()
        await services.leftovers.clear(20)
        yield services


async def run_pod(services: Services, name: str) -> PodId:
    namespaces = NamespaceOptions(network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER)
    metadata = PodMetadata(name=name, namespace="default", uid=name)
    return await services.pods.run(PodConfig(metadata=metadata, security=PodSecurity(namespaces=namespaces)), "")


async def create(services: Services, pod_id: PodId, name: str, root: Path) -> ContainerId:
    command = ("/bin/sh", "-c", "echo written > /made; exec sleep 1000")
    metadata = ContainerMetadata(name=name)
    config = ContainerConfig(metadata=metadata, command=command, external_rootfs=str(root))
    return await services.containers.create(pod_id, config, None)


async def test_its_life_over_a_restart_of_the_engine(mark: Mark) -> None:
    root = mark.root / "root"
    async with engine(mark) as services:
        pod_id = await run_pod(services, "one")
        container_id = await create(services, pod_id, "main", root)
        await services.containers.start(container_id)
    async with engine(mark) as services:
        assert services.queries.container(container_id).state is ContainerState.RUNNING
        outcome = await services.exec.exec_sync(container_id, ("cat", "/made"), 20)
        assert outcome.stdout == b"written\n"
        with pytest.raises(FailedPrecondition, match="in use"):
            await create(services, pod_id, "second", root)
        await services.containers.remove(container_id)
        second = await create(services, pod_id, "second", root)
        assert services.queries.container(second).state is ContainerState.CREATED
        await services.pods.stop(pod_id)
        await services.pods.remove(pod_id)
        assert (root / "made").read_text() == "written\n"
        assert (root / "bin/busybox").exists()
        assert list((mark.root / "graph/external").iterdir()) == []
