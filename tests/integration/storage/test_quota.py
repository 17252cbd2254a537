"""overlay2.size on file systems with project quotas; skipped where the kernel has none."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.model.errors import EngineError, Unsupported
from isulad_py.model.ids import ContainerId
from isulad_py.ports.storage import RootfsRequest
from isulad_py.storage.layers import LayerStore
from isulad_py.storage.rootfs import OverlayRootFilesystems
from tests.fakes.clock import FakeClock
from tests.fakes.tasks import TestTasks
from tests.stand.disk import NoQuotasHere, quota_disk
from tests.stand.mark import make_mark
from tests.stand.node import stand_node

pytestmark = pytest.mark.root

ONE, TWO, THREE = (ContainerId(digit * 64) for digit in "123")
MIB = 1 << 20
REFUSED = (errno.EDQUOT, errno.ENOSPC)


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    mark = make_mark("quota")
    try:
        with quota_disk(mark, request.param) as root:
            yield root
            mounts.unmount_under(str(root / "overlay"))
    except NoQuotasHere as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(mark.root)


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.close()


async def open_rootfs(disk: Path, tasks: TestTasks, limit_bytes: int = 0) -> OverlayRootFilesystems:
    layers = await LayerStore.open(str(disk), tasks=tasks, clock=FakeClock(), boot_id="boot")
    return await OverlayRootFilesystems.open(layers=layers, tasks=tasks, clock=FakeClock(), limit_bytes=limit_bytes)


def request_of(container_id: ContainerId, quota_bytes: int = 0) -> RootfsRequest:
    return RootfsRequest(container_id=container_id, layers=(), quota_bytes=quota_bytes)


def write(path: Path, size_bytes: int) -> None:
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes // 65536):
            file.write(bytes(65536))


async def used_bytes(rootfs: OverlayRootFilesystems, container_id: ContainerId) -> int:
    usage = await rootfs.usage(container_id)
    assert usage is not None
    return usage.used_bytes


async def test_a_container_may_write_so_much_and_no_more(disk: Path, tasks: TestTasks) -> None:
    rootfs = await open_rootfs(disk, tasks, limit_bytes=8 * MIB)
    one = Path(await rootfs.prepare(request_of(ONE)))
    two = Path(await rootfs.prepare(request_of(TWO, quota_bytes=32 * MIB)))
    shown = os.statvfs(one)
    assert shown.f_blocks * shown.f_frsize == 8 * MIB
    with pytest.raises(OSError, match=r"quota|space") as refused:
        write(one / "much", 16 * MIB)
    assert refused.value.errno in REFUSED
    write(two / "much", 16 * MIB)
    (one / "much").unlink()
    write(one / "less", 4 * MIB)


async def test_usage_is_read_not_measured(disk: Path, tasks: TestTasks) -> None:
    """With the clock standing still, and also without any limit."""
    rootfs = await open_rootfs(disk, tasks)
    root = Path(await rootfs.prepare(request_of(ONE)))
    before = await used_bytes(rootfs, ONE)
    write(root / "much", 16 * MIB)
    (root / "folder").mkdir()
    os.sync()
    usage, total = await rootfs.usage(ONE), await rootfs.total_usage()
    assert usage is not None
    assert usage.used_bytes - before >= 16 * MIB
    walked = sum(path.lstat().st_blocks * 512 for path in disk.glob("overlay/containers/*/diff/**/*"))
    assert abs(usage.used_bytes - walked) < MIB
    assert (total.used_bytes, total.inodes_used) == (usage.used_bytes, usage.inodes_used)
    assert not tasks.running


async def test_the_next_daemon_knows_them(disk: Path, tasks: TestTasks) -> None:
    former = await open_rootfs(disk, tasks, limit_bytes=8 * MIB)
    root = Path(await former.prepare(request_of(ONE)))
    write(root / "some", 4 * MIB)
    os.sync()
    rootfs = await open_rootfs(disk, tasks, limit_bytes=8 * MIB)
    assert await used_bytes(rootfs, ONE) >= 4 * MIB
    two = Path(await rootfs.prepare(request_of(TWO)))
    write(two / "much", 6 * MIB)
    with pytest.raises(OSError, match=r"quota|space"):
        write(root / "more", 6 * MIB)


async def test_one_that_is_removed_is_given_back(disk: Path, tasks: TestTasks) -> None:
    rootfs = await open_rootfs(disk, tasks, limit_bytes=8 * MIB)
    write(Path(await rootfs.prepare(request_of(ONE))) / "some", 4 * MIB)
    await rootfs.remove(ONE)
    assert await rootfs.usage(ONE) is None
    await tasks.settle()
    assert (await rootfs.total_usage()).used_bytes == 0
    again = Path(await rootfs.prepare(request_of(ONE)))
    write(again / "some", 6 * MIB)


async def test_a_preparation_that_fails_gives_its_project_back(disk: Path, tasks: TestTasks) -> None:
    rootfs = await open_rootfs(disk, tasks, limit_bytes=8 * MIB)
    with pytest.raises(EngineError, match="overlay"):
        await rootfs.prepare(RootfsRequest(container_id=ONE, layers=(), mount_label="no such label"))
    await tasks.settle()
    assert (await rootfs.total_usage()).inodes_used == 0
    assert await rootfs.present() == frozenset()


async def test_a_limit_is_refused_where_it_cannot_be_kept(tmp_path: Path, tasks: TestTasks) -> None:
    """At the start, so that no node runs without the bound that it was given."""
    with pytest.raises(Unsupported, match=r"overlay2\.size: .*prjquota"):
        await open_rootfs(tmp_path, tasks, limit_bytes=8 * MIB)


@pytest.mark.timeout(600)  # an emulated machine takes its time
def test_a_pod_meets_its_bound(disk: Path) -> None:
    with stand_node("quota", graph=disk / "graph", storage_opts=["overlay2.size=8M"]) as node:
        node.pull()
        pod_id = node.run_pod()
        full, other = node.run_container(pod_id, name="full"), node.run_container(pod_id, name="other")
        refused = node.exec(full, "dd", "if=/dev/zero", "of=/much", "bs=64k", "count=256")
        assert refused.exit_code == 1
        assert b"quota" in refused.stderr or b"space" in refused.stderr
        assert node.exec(other, "dd", "if=/dev/zero", "of=/some", "bs=64k", "count=64").exit_code == 0
        stats = node.call("ContainerStats", node.m.ContainerStatsRequest(container_id=full)).stats
        assert 7 * MIB < stats.writable_layer.used_bytes.value <= 8 * MIB
        node.daemon.kill()
        node.daemon.start()
        node.reconnect()
        assert node.exec(full, "dd", "if=/dev/zero", "of=/more", "bs=64k", "count=256").exit_code == 1
        node.clear_pods()
