"""A store on disk, a registry that can misbehave, and the source between them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.options import RegistryOptions
from isulad_py.model.image import ImageRecord
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from isulad_py.storage.layers import LayerStore
from tests.fakes.registry import FakeRegistry
from tests.fakes.tasks import TestTasks
from tests.images import File, Image, ImageLayer, make_image, tar_layer

FAST = RegistryOptions(backoff_seconds=0.001, connect_seconds=2, stall_seconds=0.3, certs_dir="")
"""Patience for tests: what must come, comes at once on loopback."""


def file_layer(name: str, data: bytes = b"x") -> ImageLayer:
    return tar_layer([File(name, data, uid=os.geteuid(), gid=os.getegid())])


def small_image(*names: str, **config: Any) -> Image:
    return make_image([file_layer(name) for name in names or ("file",)], config=config)


class Stand:
    """What a test pulls from, with and into."""

    def __init__(self, registry: FakeRegistry, store: LayerStore, tasks: TestTasks) -> None:
        self.registry = registry
        self.store = store
        self.tasks = tasks
        self._sources: list[RegistryImages] = []

    def source(self, options: RegistryOptions = FAST, machine: str = "x86_64") -> RegistryImages:
        source = RegistryImages(layers=self.store, options=options, clock=SystemClock(), machine=machine)
        self._sources.append(source)
        return source

    async def pull(self, name: str, options: RegistryOptions = FAST, **fields: Any) -> ImageRecord:
        return await self.source(options).pull(PullRequest(reference=parse(name), **fields))

    async def close(self) -> None:
        for source in self._sources:
            await source.close()
        await self.tasks.settle()

    def leftovers(self) -> list[str]:
        """Of pulls that failed: what is half-made."""
        return [path.name for path in Path(self.store.paths.ingest).iterdir() if not (path / "meta.json").exists()]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=SystemClock(), boot_id="boot")
    async with FakeRegistry().serve() as registry:
        stand = Stand(registry, store, tasks)
        yield stand
        await stand.close()
        assert stand.leftovers() == []
