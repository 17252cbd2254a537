"""What every implementation of ports.storage.RootFilesystems does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isulad_py.host import mounts, user_namespaces
from isulad_py.model.errors import AlreadyExists, DataLoss, FailedPrecondition, NotFound
from isulad_py.model.ids import ContainerId, Digest
from isulad_py.model.pod import PodUsers
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace
from isulad_py.ports.layers import LayerFacts
from isulad_py.ports.storage import Layers, RootFilesystems, RootfsRequest
from isulad_py.storage.external_rootfs import ExternalRootFilesystems
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.root_filesystems import NodeRootFilesystems
from isulad_py.storage.rootfs import OverlayRootFilesystems
from tests.contract.test_layers import BASE, TOP, tasks
from tests.fakes.clock import FakeClock
from tests.fakes.storage import MemoryLayers, MemoryRootFilesystems
from tests.fakes.tasks import TestTasks

__all__ = ["tasks"]

ONE = ContainerId("1" * 64)
TWO = ContainerId("2" * 64)


@pytest.fixture(params=["memory", *(pytest.param(kind, marks=pytest.mark.root) for kind in ("overlay", "node"))])
async def both(
    request: pytest.FixtureRequest, tmp_path: Path, tasks: TestTasks
) -> AsyncIterator[tuple[RootFilesystems, Layers]]:
    if request.param == "memory":
        memory = MemoryLayers()
        memory.add(BASE)
        yield MemoryRootFilesystems(memory), memory
        return
    clock = FakeClock()
    layers = await LayerStore.open(str(tmp_path), tasks=tasks, clock=clock, boot_id="boot")
    staged = await layers.stage(BASE)
    Path(staged, "hello").write_text("from the image")
    Path(staged, "data").mkdir()
    Path(staged, "data/file").write_text("at first")
    await layers.seal(staged, LayerFacts(chain_id=BASE, diff_id=Digest(BASE), used_bytes=8192, inodes=2))
    await layers.publish([BASE])
    try:
        overlay = await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=clock)
        external = await ExternalRootFilesystems.open(str(tmp_path), state="/no/such")
        yield overlay if request.param == "overlay" else NodeRootFilesystems(overlay=overlay, external=external), layers
    finally:
        mounts.unmount_under(str(tmp_path))


@pytest.fixture
def rootfs(both: tuple[RootFilesystems, Layers]) -> RootFilesystems:
    return both[0]


@asynccontextmanager
async def pinned(first: int = 100_000) -> AsyncIterator[PodUsers]:
    """A real user namespace for as long as it is needed; where there are no rights to make one, a name of one."""
    ids = (IdMapping(host_id=first, container_id=0, length=65536),)
    users = UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)
    if os.geteuid():
        yield PodUsers(ids=users, path="/fake/user")
        return
    async with user_namespaces.held(users) as pid:
        yield PodUsers(ids=users, path=f"/proc/{pid}/ns/user")


def request_of(container_id: ContainerId) -> RootfsRequest:
    return RootfsRequest(container_id=container_id, layers=(BASE,))


async def test_prepare_mounts_where_path_for_says(rootfs: RootFilesystems) -> None:
    path = await rootfs.prepare(request_of(ONE))
    assert path == rootfs.path_for(ONE)
    assert await rootfs.mounted(ONE)
    assert not await rootfs.mounted(TWO)
    assert await rootfs.present() == {ONE}


async def test_a_second_prepare_is_refused_and_harms_nothing(rootfs: RootFilesystems) -> None:
    await rootfs.prepare(request_of(ONE))
    with pytest.raises(AlreadyExists, match=ONE):
        await rootfs.prepare(request_of(ONE))
    assert await rootfs.mounted(ONE)


async def test_a_missing_layer_is_named_and_nothing_is_left(rootfs: RootFilesystems) -> None:
    with pytest.raises(NotFound, match=TOP):
        await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(BASE, TOP)))
    assert await rootfs.present() == frozenset()


async def test_remove_is_idempotent_and_works_from_the_id_alone(rootfs: RootFilesystems) -> None:
    await rootfs.prepare(request_of(ONE))
    await rootfs.prepare(request_of(TWO))
    await rootfs.remove(ONE)
    await rootfs.remove(ONE)
    assert await rootfs.present() == {TWO}
    assert not await rootfs.mounted(ONE)
    assert await rootfs.mounted(TWO)
    await rootfs.prepare(request_of(ONE))
    assert await rootfs.mounted(ONE)


async def test_volumes_are_writable_copies_that_go_with_the_root(rootfs: RootFilesystems) -> None:
    path = await rootfs.prepare(request_of(ONE))
    directories = rootfs.volumes(ONE, ["/data"])
    assert set(directories) == {"/data"}
    assert rootfs.volumes(ONE, []) == {}
    await rootfs.fill_volumes(ONE, ["/data"])
    await rootfs.fill_volumes(ONE, ["/data"])
    with pytest.raises(FailedPrecondition):
        await rootfs.fill_volumes(ONE, ["/hello"])
    with pytest.raises(NotFound):
        await rootfs.fill_volumes(ONE, ["/missing"])
    await rootfs.fill_volumes(ONE, ["/data"])
    if isinstance(rootfs, OverlayRootFilesystems):
        copy = Path(directories["/data"], "file")
        assert copy.read_text() == "at first"
        copy.write_text("changed")
        assert Path(path, "data/file").read_text() == "at first"
    await rootfs.remove(ONE)
    assert not Path(directories["/data"]).exists()
    assert await rootfs.present() == frozenset()


async def test_usage_is_known_from_the_start_and_counted_once(rootfs: RootFilesystems) -> None:
    await rootfs.prepare(request_of(ONE))
    usage = await rootfs.usage(ONE)
    assert usage is not None
    assert usage.used_bytes > 0
    assert usage.inodes_used > 0
    assert Path(usage.mountpoint).is_dir()
    total = await rootfs.total_usage()
    assert (total.used_bytes, total.inodes_used) == (usage.used_bytes, usage.inodes_used)
    assert await rootfs.usage(TWO) is None
    await rootfs.remove(ONE)
    assert (await rootfs.total_usage()).used_bytes == 0
    assert await rootfs.usage(ONE) is None


async def test_remount_is_idempotent_and_needs_a_writable_layer(rootfs: RootFilesystems) -> None:
    await rootfs.prepare(request_of(ONE))
    assert await rootfs.remount(request_of(ONE)) == rootfs.path_for(ONE)
    assert await rootfs.mounted(ONE)
    with pytest.raises(NotFound, match=TWO):
        await rootfs.remount(request_of(TWO))
    assert await rootfs.present() == {ONE}


async def test_a_root_may_belong_to_a_user_namespace(rootfs: RootFilesystems) -> None:
    async with pinned() as users:
        path = await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(BASE,), users=users))
        await rootfs.prepare(request_of(TWO))
        assert path == rootfs.path_for(ONE)
        assert await rootfs.mounted(ONE)
        assert await rootfs.present() == {ONE, TWO}
        await rootfs.remove(ONE)
        assert not await rootfs.mounted(ONE)
        assert await rootfs.mounted(TWO)


async def test_the_file_system_behind_it_has_room(rootfs: RootFilesystems) -> None:
    capacity = await rootfs.capacity()
    assert capacity.device
    assert capacity.total_bytes > 0
    assert (capacity.major, capacity.minor) != (0, 0)


async def test_the_layers_below_are_not_removed(both: tuple[RootFilesystems, Layers]) -> None:
    rootfs, layers = both
    await rootfs.prepare(request_of(ONE))
    with pytest.raises(AlreadyExists):
        await rootfs.prepare(request_of(ONE))
    await layers.remove([BASE])
    assert await layers.present() == {BASE}
    await rootfs.remove(ONE)
    await layers.remove([BASE])
    assert await layers.present() == frozenset()


async def test_a_writable_layer_is_furnished_before_it_is_mounted(rootfs: RootFilesystems) -> None:
    seen: list[tuple[str, int]] = []

    def fill(upper: str, lower: Sequence[str]) -> None:
        seen.append((upper, len(lower)))
        if Path(upper).is_dir():
            assert Path(lower[0], "hello").read_text() == "from the image"
            Path(upper, "added").write_text("from the checkpoint")

    path = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(BASE,), fill=fill)))
    changes = await rootfs.changes(ONE)
    assert [upper for upper, _ in seen] == [changes.upper]
    if path.is_dir():
        assert (path / "added").read_text() == "from the checkpoint"
        assert (path / "hello").read_text() == "from the image"
        assert [name.name for name in Path(changes.upper).iterdir()] == ["added"]
        assert len(changes.lower) == 1
    with pytest.raises(NotFound, match=TWO):
        await rootfs.changes(TWO)


async def test_what_cannot_be_furnished_leaves_nothing(rootfs: RootFilesystems) -> None:
    def fill(upper: str, lower: Sequence[str]) -> None:
        raise DataLoss("a strange archive")

    with pytest.raises(DataLoss, match="a strange archive"):
        await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(BASE,), fill=fill))
    assert await rootfs.present() == frozenset()
    assert not await rootfs.mounted(ONE)
