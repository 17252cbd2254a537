from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.model.ids import ContainerId
from isulad_py.storage.paths import OverlayPaths
from isulad_py.storage.projects import Projects
from isulad_py.storage.writable_usage import WritableUsage
from tests.fakes.clock import FakeClock
from tests.fakes.quotas import MemoryQuotas
from tests.fakes.tasks import TestTasks

ONE, TWO = ContainerId("1" * 64), ContainerId("2" * 64)


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.close()


@pytest.fixture
def paths(tmp_path: Path) -> OverlayPaths:
    paths = OverlayPaths(str(tmp_path / "overlay"))
    paths.make()
    for container_id in (ONE, TWO):
        for part in ("diff", "work"):
            Path(paths.container(container_id), part).mkdir(parents=True)
    return paths


def projects_of(paths: OverlayPaths, *, accounted: bool) -> Projects:
    return Projects(MemoryQuotas(Path(paths.root), accounted=accounted), root=paths.root)


async def test_where_the_file_system_counts_nothing_is_measured(paths: OverlayPaths, tasks: TestTasks) -> None:
    projects = projects_of(paths, accounted=True)
    usage = WritableUsage(paths, projects=projects, tasks=tasks, clock=FakeClock())
    for container_id in (ONE, TWO):
        projects.give(container_id, paths.container(container_id), 0)
        usage.made(container_id)
        usage.found(container_id)
    Path(paths.container(ONE), "diff/file").write_bytes(bytes(1 << 20))
    one, total = await usage.of(ONE), await usage.total()
    assert one is not None
    assert one.used_bytes >= 1 << 20
    assert one.inodes_used == 3
    assert total.inodes_used == 5
    assert not tasks.running
    projects.take_back(ONE)
    usage.forget(ONE)
    assert (await usage.total()).inodes_used == 2


async def test_elsewhere_a_walk_in_the_background_tells(paths: OverlayPaths, tasks: TestTasks) -> None:
    clock = FakeClock()
    usage = WritableUsage(paths, projects=projects_of(paths, accounted=False), tasks=tasks, clock=clock)
    usage.made(ONE)
    usage.found(TWO)
    assert await usage.of(TWO) is None
    await tasks.settle()
    first = await usage.of(ONE)
    assert first is not None
    Path(paths.container(ONE), "diff/file").write_bytes(bytes(1 << 20))
    assert await usage.of(ONE) is first
    clock.advance(11)
    await usage.total()
    await tasks.settle()
    now = await usage.of(ONE)
    assert now is not None
    assert now.used_bytes >= 1 << 20
    assert (await usage.total()).inodes_used == now.inodes_used + 1
    Path(paths.container(ONE), "volumes/0").mkdir(parents=True)
    clock.advance(1000)
    await usage.total()
    await tasks.settle()
    with_volumes = await usage.of(ONE)
    assert with_volumes is not None
    assert with_volumes.inodes_used == now.inodes_used + 2
    usage.forget(ONE)
    usage.forget(ONE)
    assert (await usage.total()).inodes_used == 1


async def test_both_kinds_add_up(paths: OverlayPaths, tasks: TestTasks) -> None:
    """Containers that a daemon made before the disk kept quotas."""
    projects = projects_of(paths, accounted=True)
    usage = WritableUsage(paths, projects=projects, tasks=tasks, clock=FakeClock())
    usage.found(ONE)
    projects.give(TWO, paths.container(TWO), 0)
    await tasks.settle()
    assert (await usage.total()).inodes_used == 1 + 2
