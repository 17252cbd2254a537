"""What every implementation of ports.storage.Layers does."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from isulad_py.host import mounts
from isulad_py.model.errors import AlreadyExists, NotFound
from isulad_py.model.ids import ChainId, Digest
from isulad_py.ports.layers import LayerFacts
from isulad_py.ports.storage import Layers
from isulad_py.storage.layers import LayerStore
from tests.fakes.clock import FakeClock
from tests.fakes.storage import MemoryLayers
from tests.fakes.tasks import TestTasks

Add = Callable[[ChainId], Awaitable[None]]


def chain(word: str) -> ChainId:
    return ChainId("sha256:" + hashlib.sha256(word.encode()).hexdigest())


BASE, TOP = chain("base"), chain("top")


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.close()


@pytest.fixture(params=["memory", pytest.param("overlay", marks=pytest.mark.root)])
async def store(request: pytest.FixtureRequest, tmp_path: Path, tasks: TestTasks) -> AsyncIterator[tuple[Layers, Add]]:
    if request.param == "memory":
        memory = MemoryLayers()

        async def add_to_memory(chain_id: ChainId) -> None:
            memory.add(chain_id)

        yield memory, add_to_memory
        return
    layers = await LayerStore.open(str(tmp_path), tasks=tasks, clock=FakeClock(), boot_id="boot")

    async def add_to_disk(chain_id: ChainId) -> None:
        staged = await layers.stage(chain_id)
        Path(staged, f"file-{chain_id[7:12]}").write_text("content")
        facts = LayerFacts(chain_id=chain_id, diff_id=Digest(chain_id), used_bytes=8192, inodes=2)
        await layers.seal(staged, facts)
        await layers.publish([chain_id])

    try:
        yield layers, add_to_disk
    finally:
        mounts.unmount_under(str(tmp_path))


async def test_what_came_in_is_present_and_counted(store: tuple[Layers, Add]) -> None:
    layers, add = store
    before = await layers.total_usage()
    await add(BASE)
    await add(TOP)
    assert await layers.present() == {BASE, TOP}
    after = await layers.total_usage()
    assert after.used_bytes > before.used_bytes
    assert after.inodes_used > before.inodes_used
    assert Path(after.mountpoint).is_dir()


async def test_removal_is_idempotent_and_takes_only_what_is_named(store: tuple[Layers, Add]) -> None:
    layers, add = store
    await add(BASE)
    await add(TOP)
    await layers.remove([TOP])
    await layers.remove([TOP, chain("never there")])
    assert await layers.present() == {BASE}
    await add(TOP)
    assert await layers.present() == {BASE, TOP}


async def test_a_view_is_named_by_its_key_until_released(store: tuple[Layers, Add]) -> None:
    layers, add = store
    await add(BASE)
    await add(TOP)
    path = await layers.view("container-0", (BASE, TOP))
    assert await layers.view("container-0", (BASE, TOP)) == path
    with pytest.raises(AlreadyExists):
        await layers.view("container-0", (BASE,))
    assert await layers.view("container-1", (BASE,)) != path
    assert await layers.views() == {"container-0", "container-1"}
    await layers.release("container-0")
    await layers.release("container-0")
    assert await layers.views() == {"container-1"}


async def test_layers_under_a_view_are_not_removed(store: tuple[Layers, Add]) -> None:
    layers, add = store
    await add(BASE)
    await add(TOP)
    await layers.view("container-0", (BASE,))
    await layers.remove([BASE, TOP])
    assert await layers.present() == {BASE}
    await layers.release("container-0")
    await layers.remove([BASE])
    assert await layers.present() == frozenset()


async def test_a_view_of_a_missing_layer_is_not_found_and_leaves_nothing(store: tuple[Layers, Add]) -> None:
    layers, add = store
    await add(BASE)
    with pytest.raises(NotFound, match=r"view-x.*" + TOP):
        await layers.view("view-x", (BASE, TOP))
    assert await layers.views() == frozenset()
