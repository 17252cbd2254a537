"""Layers and root file systems on a real kernel."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from isulad_py.host import mounts, user_namespaces
from isulad_py.model.errors import HostFailure, NotFound, ResourceExhausted, Unsupported
from isulad_py.model.ids import ChainId, ContainerId, Digest
from isulad_py.model.pod import PodUsers
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace
from isulad_py.ports.layers import LayerFacts
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage import layer_disk
from isulad_py.storage.layers import OWN_BYTES, SPARE_BYTES, SPARE_SECONDS, LayerStore
from isulad_py.storage.rootfs import OverlayRootFilesystems
from tests.fakes.clock import FakeClock
from tests.fakes.tasks import TestTasks

pytestmark = pytest.mark.root

ONE = ContainerId("1" * 64)


def chain(number: int) -> ChainId:
    return ChainId("sha256:" + hashlib.sha256(str(number).encode()).hexdigest())


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.close()


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture(autouse=True)
def _unmount(tmp_path: Path) -> object:
    yield
    mounts.unmount_under(str(tmp_path))


async def open_store(graph: str, tasks: TestTasks, boot_id: str = "boot", clock: FakeClock | None = None) -> LayerStore:
    return await LayerStore.open(graph, tasks=tasks, clock=clock or FakeClock(), boot_id=boot_id)


async def seal(
    store: LayerStore,
    number: int,
    fill: Callable[[Path], object],
    implied: tuple[bytes, ...] = (),
    used_bytes: int = 4096,
) -> ChainId:
    staged = await store.stage(chain(number))
    fill(Path(staged))
    facts = LayerFacts(
        chain_id=chain(number), diff_id=Digest(chain(number)), used_bytes=used_bytes, inodes=1, implied=implied
    )
    await store.seal(staged, facts)
    return chain(number)


def writer(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


async def emptied(store: LayerStore, tasks: TestTasks) -> None:
    await tasks.settle()
    assert list(Path(store.paths.trash).iterdir()) == []


async def test_the_upper_layers_win_and_writes_stay_in_the_container(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    image = (await seal(store, 0, writer("a", "base")), await seal(store, 1, writer("a", "top")))
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image)))
    assert (root / "a").read_text() == "top"
    (root / "a").write_text("mine")
    (root / "b").write_text("new")
    assert Path(store.paths.diff(image[1]), "a").read_text() == "top"
    view = Path(await store.view("v", image))
    assert (view / "a").read_text() == "top"
    with pytest.raises(OSError, match="Read-only"):
        (view / "c").write_text("no")
    single = Path(await store.view("w", image[:1]))
    assert (single / "a").read_text() == "base"
    nothing = Path(await store.view("n", ()))
    assert list(nothing.iterdir()) == []


async def test_a_layer_that_hides_all_others(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)

    def hiding(root: Path) -> None:
        (root / "b").write_text("middle")
        os.setxattr(root, "trusted.overlay.opaque", b"y")

    image = (
        await seal(store, 0, writer("a", "x")),
        await seal(store, 1, hiding),
        await seal(store, 2, writer("c", "x")),
    )
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image)))
    view = Path(await store.view("v", image))
    for folder in (root, view):
        assert sorted(path.name for path in folder.iterdir()) == ["b", "c"]
    await store.remove(image)
    assert await store.present() == set(image), "also the hidden one, which the record of the container names"


@pytest.mark.parametrize("count", [60, 128])
async def test_many_layers_fit_into_one_mount(graph: str, tasks: TestTasks, count: int) -> None:
    store = await open_store(graph, tasks)
    image = tuple([await seal(store, n, writer(f"file{n}", str(n))) for n in range(count)])
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    before = Path.cwd()
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image)))
    assert Path.cwd() == before
    assert len(list(root.iterdir())) == count
    assert len(list(Path(await store.view("v", image)).iterdir())) == count


async def test_too_many_layers_are_refused_and_nothing_is_left(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    image = tuple([await seal(store, n, writer(f"file{n}", str(n))) for n in range(170)])
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    with pytest.raises(Unsupported, match="170 layers"):
        await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image))
    assert await rootfs.present() == frozenset()


@pytest.mark.parametrize("name", ["com,ma", "co:lon", "back\\slash", "bl ank"])
async def test_a_graph_root_may_have_any_name(graph: str, tasks: TestTasks, name: str) -> None:
    Path(graph, name).mkdir()
    store = await open_store(f"{graph}/{name}", tasks)
    image = (await seal(store, 0, writer("a", "x")),)
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image)))
    (root / "b").write_text("y")
    assert sorted(path.name for path in root.iterdir()) == ["a", "b"]
    await rootfs.remove(ONE)
    assert not mounts.mountpoints_under(f"{graph}/{name}")


async def test_an_image_without_layers_is_an_empty_root(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=())))
    (root / "a").write_text("x")
    assert stat.S_IMODE(root.stat().st_mode) == 0o755


async def test_the_root_directory_takes_after_the_image(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)

    def fill(root: Path) -> None:
        root.chmod(0o1751)
        os.chown(root, 12, 34)

    image = (await seal(store, 0, fill), await seal(store, 1, writer("a", "x"), implied=(b"",)))
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    state = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image))).stat()
    assert (stat.S_IMODE(state.st_mode), state.st_uid, state.st_gid) == (0o1751, 12, 34)


async def test_implied_directories_take_after_the_layers_below(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)

    def base(root: Path) -> None:
        for name, mode in (("tmp", 0o1777), ("home", 0o711), ("home/user", 0o700), ("hidden", 0o700)):
            (root / name).mkdir()
            (root / name).chmod(mode)
        os.chown(root / "home/user", 1000, 1000)
        os.utime(root / "home/user", (5, 5))
        os.setxattr(root / "home/user", "user.note", b"kept")

    def middle(root: Path) -> None:
        (root / "hidden").write_text("a file instead")

    def top(root: Path) -> None:
        (root / "tmp").mkdir()
        (root / "home/user/sub").mkdir(parents=True)
        (root / "hidden").mkdir()
        (root / "hidden").chmod(0o755)

    image = (
        await seal(store, 0, base),
        await seal(store, 1, middle),
        await seal(store, 2, top, implied=(b"tmp", b"home", b"hidden", b"home/user", b"home/user/sub")),
    )
    await store.publish(image)
    diff = Path(store.paths.diff(image[2]))
    assert stat.S_IMODE((diff / "tmp").stat().st_mode) == 0o1777
    assert stat.S_IMODE((diff / "home").stat().st_mode) == 0o711
    user = (diff / "home/user").stat()
    assert (stat.S_IMODE(user.st_mode), user.st_uid, user.st_mtime) == (0o700, 1000, 5)
    assert os.getxattr(diff / "home/user", "user.note") == b"kept"
    assert stat.S_IMODE((diff / "hidden").stat().st_mode) == 0o755


async def test_after_a_crash_published_stays_sealed_is_kept_within_one_boot_and_staged_goes(
    graph: str, tasks: TestTasks
) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, 0, writer("a", "x"))])
    await seal(store, 1, writer("b", "y"))
    staged = await store.stage(chain(2))
    Path(staged, "c").write_text("half")
    link = next(Path(store.paths.links).iterdir())
    link.unlink()
    Path(store.paths.links, "stale").symlink_to("../layers/none/diff")

    again = await open_store(graph, tasks)
    assert await again.present() == {chain(0)}
    assert again.find(chain(1)) is not None
    assert again.find(chain(2)) is None
    assert not Path(staged).exists()
    assert [path.name for path in Path(store.paths.links).iterdir()] == [link.name]
    await again.publish([chain(0), chain(1)])
    assert await again.present() == {chain(0), chain(1)}
    await emptied(again, tasks)

    await seal(again, 3, writer("d", "z"))
    rebooted = await open_store(graph, tasks, boot_id="another")
    assert rebooted.find(chain(3)) is None
    assert await rebooted.present() == {chain(0), chain(1)}
    await emptied(rebooted, tasks)


async def test_what_cannot_be_read_is_moved_aside_never_deleted(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, 0, writer("a", "x"))])
    Path(store.paths.layer(chain(0)), "meta.json").write_text("{")
    again = await open_store(graph, tasks)
    assert await again.present() == frozenset()
    (aside,) = Path(again.paths.aside).iterdir()
    assert (aside / "diff/a").read_text() == "x"
    await again.publish([await seal(again, 0, writer("a", "x"))])
    assert await again.present() == {chain(0)}


async def test_sealed_layers_are_bounded_but_not_those_of_a_pull_under_way(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    image = [chain(n) for n in range(70)]
    with store.keep(image):
        for n in range(70):
            await seal(store, n, writer("a", str(n)))
        with store.keep([chain(1000)]):
            pass
        assert all(store.find(chain_id) for chain_id in image)
    assert [store.find(chain_id) is not None for chain_id in image] == [False] * 6 + [True] * 64
    with pytest.raises(NotFound):
        await store.publish(image)
    await emptied(store, tasks)


async def test_what_a_failed_pull_left_goes_after_its_time(graph: str, tasks: TestTasks) -> None:
    clock = FakeClock(now_ns=time.time_ns())
    store = await open_store(graph, tasks, clock=clock)
    await seal(store, 0, writer("a", "x"))
    await store.expire()
    assert store.find(chain(0)) is not None
    assert (await store.total_usage()).used_bytes == 4096 + OWN_BYTES, "it takes room like any other"
    clock.advance(SPARE_SECONDS + 60)
    with store.keep([chain(0)]):
        await store.expire()
        assert store.find(chain(0)) is not None, "a pull counts on it"
    assert store.find(chain(0)) is None
    await emptied(store, tasks)

    await seal(store, 1, writer("a", "x"))
    late = FakeClock(now_ns=time.time_ns() + int(1e9 * SPARE_SECONDS))
    again = await open_store(graph, tasks, clock=late)
    assert again.find(chain(1)) is not None
    await again.expire()
    assert again.find(chain(1)) is None, "the former daemon's time counts too"
    await emptied(again, tasks)


async def test_what_failed_pulls_left_is_bounded_in_bytes(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks, clock=FakeClock(now_ns=time.time_ns()))
    for number in range(3):
        await seal(store, number, writer("a", str(number)), used_bytes=SPARE_BYTES // 2)
    await store.expire()
    assert [store.find(chain(number)) is not None for number in range(3)] == [False, True, True]
    await emptied(store, tasks)


async def test_young_layers_are_those_of_the_last_hour_within_a_bound(graph: str, tasks: TestTasks) -> None:
    clock = FakeClock(now_ns=time.time_ns())
    store = await open_store(graph, tasks, clock=clock)
    image = [await seal(store, n, writer("a", str(n)), used_bytes=SPARE_BYTES // 2 - 4096) for n in range(3)]
    await store.publish(image)
    for age, number in ((30, 0), (20, 1), (10, 2)):
        at = time.time() - age
        os.utime(Path(store.paths.layer(chain(number)), "meta.json"), (at, at))
    assert await store.young(image) == {chain(1), chain(2)}
    assert await store.young([chain(0), chain(99)]) == {chain(0)}
    clock.advance(SPARE_SECONDS + 60)
    assert await store.young(image) == frozenset()


async def test_on_a_disk_that_is_nearly_full_nothing_is_kept_that_is_only_spare(
    graph: str, tasks: TestTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet frees space by removing images: what belongs to none must not make it remove more of them."""
    store = await open_store(graph, tasks, clock=FakeClock(now_ns=time.time_ns()))
    await store.publish([await seal(store, 0, writer("a", "x"))])
    await seal(store, 1, writer("a", "y"))
    monkeypatch.setattr(layer_disk, "SPARE_SHARE", 1.01)
    assert await store.young([chain(0)]) == frozenset()
    with store.keep([chain(1)]):
        await store.expire()
        assert store.find(chain(1)) is not None
    await store.expire()
    assert store.find(chain(1)) is None
    await emptied(store, tasks)


async def test_on_a_full_disk_what_failed_pulls_left_goes(
    graph: str, tasks: TestTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(graph, tasks, clock=FakeClock(now_ns=time.time_ns()))
    await seal(store, 0, writer("a", "x"))
    await seal(store, 1, writer("a", "x"))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096, f_favail=0, f_files=0))
    with store.keep([chain(1)]):
        with pytest.raises(ResourceExhausted):
            await store.stage(chain(2))
        assert store.find(chain(0)) is None
        assert store.find(chain(1)) is not None
    await emptied(store, tasks)


async def test_sealing_and_publishing_what_another_pull_has_brought_is_success(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await seal(store, 0, writer("a", "first"))
    await seal(store, 0, writer("a", "second"))
    await asyncio.gather(store.publish([chain(0)]), store.publish([chain(0)]))
    await seal(store, 0, writer("a", "third"))
    assert Path(store.paths.diff(chain(0)), "a").read_text() == "first"
    assert list(Path(store.paths.ingest).iterdir()) == []
    await emptied(store, tasks)


async def test_discarding_is_idempotent(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    staged = await store.stage(chain(0))
    await store.discard(staged)
    await store.discard(staged)
    with pytest.raises(ValueError, match="not staged here"):
        await store.discard("/etc")
    assert list(Path(store.paths.ingest).iterdir()) == []


async def test_the_next_daemon_knows_which_layers_are_in_use(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, n, writer("a", str(n))) for n in range(4)])
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(chain(0),)))
    await store.view("v", (chain(1),))

    again = await open_store(graph, tasks)
    rootfs = await OverlayRootFilesystems.open(layers=again, tasks=tasks, clock=FakeClock())
    await again.remove(await again.present())
    assert await again.present() == {chain(0), chain(1)}

    note = Path(again.paths.container(ONE), "layers.json")
    note.write_text("{")
    await again.publish([await seal(again, 2, writer("a", "2"))])
    unsure = await open_store(graph, tasks)
    rootfs = await OverlayRootFilesystems.open(layers=unsure, tasks=tasks, clock=FakeClock())
    await unsure.remove(await unsure.present())
    assert await unsure.present() == {chain(0), chain(1), chain(2)}
    await rootfs.remove(ONE)
    await unsure.remove(await unsure.present())
    assert await unsure.present() == {chain(1)}
    await tasks.settle()


async def test_removal_of_a_busy_container_and_of_half_made_leftovers(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, 0, writer("a", "x"))])
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    root = await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(chain(0),)))
    fd = os.open(f"{root}/a", os.O_RDONLY)
    try:
        await rootfs.remove(ONE)
        assert await rootfs.present() == frozenset()
    finally:
        os.close(fd)
    half = ContainerId("3" * 64)
    Path(store.paths.container(half), "diff").mkdir(parents=True)
    await rootfs.remove(half)
    assert await rootfs.present() == frozenset()
    await emptied(store, tasks)


async def test_remount_after_a_reboot_keeps_what_was_written(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, 0, writer("a", "x"))])
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    request = RootfsRequest(container_id=ONE, layers=(chain(0),))
    root = Path(await rootfs.prepare(request))
    (root / "mine").write_text("kept")
    mounts.unmount(str(root))
    assert not await rootfs.mounted(ONE)
    await rootfs.remount(request)
    assert (root / "mine").read_text() == "kept"


async def test_usage_is_measured_in_the_background_and_not_too_often(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    await store.publish([await seal(store, 0, writer("a", "x"))])
    clock = FakeClock()
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=clock)
    root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(chain(0),))))
    first = await rootfs.usage(ONE)
    assert first is not None
    (root / "big").write_bytes(bytes(1_000_000))
    assert await rootfs.usage(ONE) is first
    clock.advance(11)
    assert await rootfs.usage(ONE) is first
    await tasks.settle()
    now = await rootfs.usage(ONE)
    assert now is not None
    assert now.used_bytes > first.used_bytes + 900_000
    assert now.inodes_used == first.inodes_used

    again = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=clock)
    assert await again.usage(ONE) is None
    await tasks.settle()
    seen = await again.usage(ONE)
    assert seen is not None
    assert seen.used_bytes == now.used_bytes


async def test_a_quota_is_refused_where_there_is_none(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    with pytest.raises(Unsupported, match=r"overlay2\.size"):
        await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(), quota_bytes=1 << 20))
    assert await rootfs.present() == frozenset()


def owner(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid


def users_of(pid: int, first: int) -> PodUsers:
    return PodUsers(ids=user_ids(first), path=f"/proc/{pid}/ns/user")


def user_ids(first: int) -> UserNamespace:
    ids = (IdMapping(host_id=first, container_id=0, length=65536),)
    return UserNamespace(mode=NamespaceMode.POD, uids=ids, gids=ids)


def furnish(root: Path) -> None:
    (root / "program").write_text("from the image")
    (root / "program").chmod(0o4755)
    (root / "home").mkdir()
    os.chown(root / "home", 1000, 1001)
    (root / "link").symlink_to("program")
    os.chown(root / "link", 1000, 1001, follow_symlinks=False)


async def test_two_user_namespaces_share_the_layers_of_one_image(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    image = (await seal(store, 0, furnish), await seal(store, 1, writer("b", "top")))
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    layer = Path(store.paths.diff(image[0]))
    for number, first in ((1, 100_000), (2, 300_000)):
        container_id = ContainerId(str(number) * 64)
        async with user_namespaces.held(user_ids(first)) as pid:
            users = users_of(pid, first)
            root = Path(await rootfs.prepare(RootfsRequest(container_id=container_id, layers=image, users=users)))
            view = Path(await store.view(f"{container_id}-0", image[:1], users))
        # The namespace has ended; what was mounted with its ids stays.
        for shown in (root, view):
            assert owner(shown) == owner(shown / "program") == (first, first)
            assert owner(shown / "home") == owner(shown / "link") == (first + 1000, first + 1001)
            assert stat.S_IMODE((shown / "program").stat().st_mode) == 0o4755
        (root / "home" / "new").write_text("x")  # copies its directory up, with the owner that it shows
        diff = Path(store.paths.container(container_id)) / "diff"
        assert owner(diff) == (first, first)
        assert owner(diff / "home") == (first + 1000, first + 1001)
        assert not (diff / "program").exists()
        assert owner(layer / "home") == (1000, 1001)
        # Only root of the namespace gets to it, beside root of the host.
        folder = Path(store.paths.container(container_id))
        assert (owner(folder), stat.S_IMODE(folder.stat().st_mode)) == ((0, first), 0o710)
    left = {Path(point).name for point in mounts.mountpoints_under(graph)}
    assert left == {"merged", "root"}
    host = await rootfs.prepare(RootfsRequest(container_id=ContainerId("3" * 64), layers=image))
    assert owner(Path(host, "home")) == (1000, 1001)
    for number in (1, 2, 3):
        await rootfs.remove(ContainerId(str(number) * 64))
        await store.release(f"{str(number) * 64}-0")
    assert mounts.mountpoints_under(graph) == []
    await store.remove(image)
    await emptied(store, tasks)


@pytest.mark.parametrize(("count", "name"), [(0, "graph"), (1, "graph"), (2, "co:lon"), (60, "graph"), (128, "graph")])
async def test_mapped_layers_are_named_in_one_mount(graph: str, tasks: TestTasks, count: int, name: str) -> None:
    store = await open_store(f"{graph}/{name}", tasks)
    image = tuple([await seal(store, n, writer(f"file{n}", str(n))) for n in range(count)])
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    async with user_namespaces.held(user_ids(100_000)) as pid:
        users = users_of(pid, 100_000)
        root = Path(await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image, users=users)))
        view = Path(await store.view("v", image, users))
        mounts.unmount(str(root))
        await rootfs.remount(RootfsRequest(container_id=ONE, layers=image, users=users))
    for shown in (root, view):
        assert {owner(path) for path in (shown, *shown.iterdir())} == {(100_000, 100_000)}
        assert len(list(shown.iterdir())) == count
    (root / "new").write_text("x")
    with pytest.raises(OSError, match="Read-only"):
        (view / "new").write_text("x")


async def test_what_a_crash_left_of_a_mapped_mount_goes_and_the_layers_stay(graph: str, tasks: TestTasks) -> None:
    """As a daemon leaves it that is killed between the passing mount and the overlay."""
    store = await open_store(graph, tasks)
    image = (await seal(store, 0, furnish),)
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    folders = [Path(store.paths.container(ONE)), Path(store.paths.view("v"))]
    with contextlib.ExitStack() as left:
        for folder in folders:
            (folder / "mapped").mkdir(parents=True)
            async with user_namespaces.held(user_ids(100_000)) as pid:
                left.enter_context(mounts.mapped(store.paths.root, str(folder / "mapped"), f"/proc/{pid}/ns/user"))
        assert len(mounts.mountpoints_under(graph)) == 2
        await rootfs.remove(ONE)
        await store.release("v")
        assert mounts.mountpoints_under(graph) == []
    await emptied(store, tasks)
    assert Path(store.paths.diff(image[0]), "program").exists()
    assert not any(folder.exists() for folder in folders)


async def test_a_user_namespace_that_is_gone_leaves_nothing(graph: str, tasks: TestTasks) -> None:
    store = await open_store(graph, tasks)
    image = (await seal(store, 0, furnish),)
    await store.publish(image)
    rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
    Path(graph, "user").touch()
    for path, words in ((f"{graph}/none", "open"), (f"{graph}/user", "map the owners of")):
        users = PodUsers(ids=user_ids(100_000), path=path)
        with pytest.raises(HostFailure, match=words):
            await rootfs.prepare(RootfsRequest(container_id=ONE, layers=image, users=users))
        with pytest.raises(HostFailure, match=words):
            await store.view("v", image, users)
        assert await rootfs.present() == frozenset()
        assert await store.views() == frozenset()
        assert mounts.mountpoints_under(graph) == []


async def test_what_is_in_the_way_of_user_namespaces_is_told(tasks: TestTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # that of pytest is closed to others
        store = await open_store(f"{folder}/graph", tasks)
        rootfs = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
        assert await rootfs.users_obstacle() == f"{folder} cannot be searched by everybody (mode 700)"
        Path(folder).chmod(0o711)
        assert await rootfs.users_obstacle() == ""
        assert await rootfs.present() == frozenset()
        assert mounts.mountpoints_under(folder) == []

        def old_kernel(source: str, target: str, userns_path: str) -> contextlib.AbstractContextManager[None]:
            raise HostFailure("map the owners: invalid argument")

        monkeypatch.setattr(mounts, "mapped", old_kernel)
        another = await OverlayRootFilesystems.open(layers=store, tasks=tasks, clock=FakeClock())
        assert await another.users_obstacle() == "map the owners: invalid argument"
        assert await another.present() == frozenset()
        await tasks.settle()
