"""Pulls for every test of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.storage.layers import LayerStore
from tests.fakes.registry import FakeRegistry
from tests.fakes.tasks import TestTasks
from tests.unit.images.archive_stand import Stand as ArchiveStand
from tests.unit.images.archive_stand import stand_at
from tests.unit.images.stand import Stand


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=SystemClock(), boot_id="boot")
    async with FakeRegistry().serve() as registry:
        stand = Stand(registry, store, tasks)
        yield stand
        await stand.close()
        assert stand.leftovers() == []


@pytest.fixture
async def tasks() -> AsyncIterator[TestTasks]:
    tasks = TestTasks()
    yield tasks
    await tasks.settle()


@pytest.fixture
async def archive_stand(tmp_path: Path, tasks: TestTasks) -> ArchiveStand:
    return await stand_at(tmp_path / "graph", tasks)
