"""Layers onto disks that have little room: what runs there keeps its reserve."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.host.clock import SystemClock
from isulad_py.model.errors import ResourceExhausted
from isulad_py.storage.layer_disk import RESERVE_BYTES, RESERVE_INODES
from isulad_py.storage.layers import LayerStore
from tests.fakes.registry import FakeRegistry
from tests.fakes.tasks import TestTasks
from tests.images import Dir, Entry, File, make_image, tar_layer
from tests.unit.images.stand import Stand

pytestmark = pytest.mark.root


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.settle()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    yield path
    mounts.unmount_under(str(path))


@pytest.mark.parametrize(
    ("options", "words", "make"),
    [
        (f"size={RESERVE_BYTES + (8 << 20)}", "MiB would be free", lambda n: File(f"f{n}", b"x")),
        (f"size=1g,nr_inodes={RESERVE_INODES + 1500}", "inodes would be free", lambda n: Dir(f"d{n}")),
    ],
)
async def test_small_things_never_take_the_reserve(
    disk: Path, tasks: TestTasks, options: str, words: str, make: Callable[[int], Entry]
) -> None:
    """Three layers at once, of 2,000 one-byte files or empty directories each: a few kilobytes as a tar says it."""
    mounts.mount("tmpfs", str(disk), "tmpfs", 0, options)
    store = await LayerStore.open(str(disk), tasks=tasks, clock=SystemClock(), boot_id="boot")
    layers = [tar_layer(make(10_000 * layer + number) for number in range(2000)) for layer in range(3)]
    least = [1 << 62, 1 << 62]
    take = store.take

    def look(used_bytes: int, inodes: int) -> None:
        take(used_bytes, inodes)
        state = os.statvfs(disk)
        least[:] = [min(least[0], state.f_bavail * state.f_frsize), min(least[1], state.f_favail)]

    store.take = look  # type: ignore[method-assign]
    async with FakeRegistry().serve() as registry:
        stand = Stand(registry, store, tasks)
        with pytest.raises(ResourceExhausted, match=words):
            await stand.pull(registry.put("app", "v1", make_image(layers)))
        await stand.close()
    assert least[0] >= RESERVE_BYTES - 16 * 4096
    assert least[1] >= RESERVE_INODES - 16
    assert [path.name for path in (disk / "overlay/ingest").iterdir() if not (path / "meta.json").exists()] == []
