"""A store on disk, a registry that can misbehave, and the source between them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.host.clock import SystemClock
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.options import RegistryOptions
from isulad_py.model.errors import EngineError
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from isulad_py.storage.layers import LayerStore
from tests.fakes.registry import FakeRegistry, Handler
from tests.fakes.tasks import TestTasks
from tests.images import File, Image, ImageLayer, make_image, tar_layer

FAST = RegistryOptions(backoff_seconds=0.001, connect_seconds=20, stall_seconds=20, certs_dir="")
"""What must come, comes at once on loopback; but a busy machine may take its time."""
IMPATIENT = replace(FAST, stall_seconds=0.3)
"""For what never comes."""


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


LOGIN = ("user", "hunter2")
GIVEN = Credentials(username="user", password="hunter2")


async def refused(stand: Stand, name: str, kind: type[EngineError], words: str, **fields: Any) -> EngineError:
    with pytest.raises(EngineError, match=words) as caught:
        await stand.pull(name, **fields)
    assert type(caught.value) is kind, repr(caught.value)
    assert str(parse(name)) in str(caught.value)
    assert await stand.store.present() == frozenset()
    return caught.value


def answering(**fields: Any) -> Callable[[web.Request, Handler], Any]:
    async def answer(_: web.Request, __: Handler) -> web.StreamResponse:
        return web.Response(**fields)

    return answer


def layer_blob(image: Image) -> str:
    return str(json.loads(image.document)["layers"][0]["digest"])


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
