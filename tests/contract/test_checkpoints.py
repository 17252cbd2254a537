"""What every Checkpointer does, with what keeps its checkpoints: the fakes, and the real ones (root, CRIU)."""

from __future__ import annotations

import secrets
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.images.checkpoints import CheckpointDirectory
from isulad_py.model.errors import AlreadyExists, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.checkpoints import Checkpointer, CheckpointFiles, CheckpointPlace, Dump
from isulad_py.ports.runtime import ContainerRuntime, Launch
from isulad_py.ports.storage import Changes
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.fakes.checkpoints import FakeCheckpointer, MemoryCheckpoints
from tests.fakes.runtime import FakeRuntime
from tests.stand.cgroups import cgroups_named, remove_cgroup
from tests.stand.criu import working_criu
from tests.stand.rootfs import make_rootfs, spec

HANDLER = "runc"
FOR_EVER = ("sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.05; done")


@dataclass
class Bed:
    runtime: ContainerRuntime
    checkpointer: Checkpointer
    files: CheckpointFiles
    folder: Path
    cgroup_parent: str

    def launch(self) -> Launch:
        container_id = ContainerId(new_id())
        root = self.folder / "rootfs"
        document = msgspec.json.decode(spec(FOR_EVER, root=root, cgroup=f"{self.cgroup_parent}/{container_id}"))
        document["linux"].setdefault("namespaces", [{"type": "pid"}, {"type": "mount"}])
        return Launch(id=container_id, handler=HANDLER, spec=msgspec.json.encode(document))

    async def running(self) -> Launch:
        launch = self.launch()
        await self.runtime.create(launch)
        await self.runtime.start(launch.id, HANDLER)
        return launch

    @property
    def location(self) -> str:
        return str(self.folder / "one.tar")

    async def checkpoint(self, launch: Launch) -> None:
        place = await self.files.begin(launch.id, self.location)
        await self.runtime.pause(launch.id, HANDLER)
        await self.checkpointer.dump(Dump(id=launch.id, handler=HANDLER, place=place))
        (self.folder / "upper").mkdir(exist_ok=True)
        await self.files.keep_changes(launch.id, Changes(upper=str(self.folder / "upper"), lower=()))
        await self.runtime.resume(launch.id, HANDLER)
        config = msgspec.json.encode({"name": "x", "rootfsImageName": "i:1", "rootfsImageRef": "i@sha256:1"})
        await self.files.write(launch.id, self.location, {"config.dump": config, "spec.dump": launch.spec}, "")


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.root)])
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    if request.param == "fake":
        fake = FakeRuntime()
        yield Bed(fake, FakeCheckpointer(fake), MemoryCheckpoints(), tmp_path, "/test")
        return
    parent = f"t{secrets.token_hex(6)}"
    runtime = OciRuntime(
        handlers={HANDLER: RuntimeHandler(name=HANDLER)},
        facts=read_facts(),
        clock=SystemClock(),
        options=Options(state=str(tmp_path / "state"), criu=working_criu()),
    )
    make_rootfs(tmp_path / "rootfs")
    yield Bed(runtime, runtime.checkpoints(), CheckpointDirectory(str(tmp_path / "graph")), tmp_path, f"/{parent}")
    for container_id in await runtime.present():
        await runtime.delete(container_id, HANDLER)
    for folder in cgroups_named(parent, depth=1):
        assert remove_cgroup(folder)


async def test_from_a_running_container_to_another_that_runs(bed: Bed) -> None:
    assert await bed.checkpointer.obstacle(HANDLER) == ""
    launch = await bed.running()
    await bed.checkpoint(launch)
    assert await bed.runtime.state(launch.id, HANDLER) == "running"
    await bed.files.discard(launch.id, bed.location)
    assert await bed.files.present() == frozenset()
    await bed.runtime.delete(launch.id, HANDLER)

    again = bed.launch()
    async with bed.files.open(bed.location) as archive:
        assert (archive.about.name, archive.about.image_name, archive.about.terminal) == ("x", "i:1", False)
        await archive.unpack(again.id, again.spec)
    assert await bed.files.present() == {again.id}
    assert await bed.files.spec(again.id) == again.spec
    processes = await bed.runtime.create(replace(again, restore=bed.files.place(again.id).images))
    assert await bed.runtime.state(again.id, HANDLER) == "running"
    assert await bed.checkpointer.restored(again.id) == processes
    await bed.runtime.kill(again.id, HANDLER, signal.SIGTERM)
    assert (await bed.runtime.wait_exit(again.id, processes)).exit_code == 7
    await bed.files.discard(again.id)


async def test_what_cannot_be_checkpointed(bed: Bed) -> None:
    with pytest.raises(InvalidInput):
        await bed.checkpointer.obstacle("nobody")
    place = await bed.files.begin(ContainerId("unknown"), bed.location)
    with pytest.raises(NotFound):
        await bed.checkpointer.dump(Dump(id=ContainerId("unknown"), handler=HANDLER, place=place))
    launch = bed.launch()
    await bed.runtime.create(launch)
    place = await bed.files.begin(launch.id, bed.location)
    with pytest.raises(FailedPrecondition):
        await bed.checkpointer.dump(Dump(id=launch.id, handler=HANDLER, place=place))
    await bed.checkpointer.end_dump(place)


async def test_an_archive_is_never_replaced(bed: Bed) -> None:
    launch = await bed.running()
    await bed.checkpoint(launch)
    with pytest.raises(AlreadyExists, match="location"):
        await bed.files.begin(launch.id, bed.location)
    with pytest.raises(InvalidInput):
        async with bed.files.open(f"{bed.folder}/none.tar"):
            pass
    with pytest.raises(NotFound):
        await bed.files.spec(ContainerId("unknown"))


async def test_documents(bed: Bed) -> None:
    path = str(bed.folder / "pod.options")
    await bed.files.write_document(path, b"{}")
    assert await bed.files.read_document(path) == b"{}"
    with pytest.raises(AlreadyExists):
        await bed.files.write_document(path, b"{}")
    await bed.files.remove(path)
    await bed.files.remove(path)
    with pytest.raises(InvalidInput):
        await bed.files.read_document(path)


async def test_a_place_is_told_by_the_container(bed: Bed) -> None:
    launch = bed.launch()
    place = await bed.files.begin(launch.id, bed.location)
    assert isinstance(place, CheckpointPlace)
    assert place == bed.files.place(launch.id)
    await bed.files.discard(launch.id, bed.location)
    await bed.files.discard(launch.id)
