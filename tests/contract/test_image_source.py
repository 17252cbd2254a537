"""What every implementation of ports.images.ImageSource does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.images.adapter import RegistryImages
from isulad_py.images.options import RegistryOptions
from isulad_py.model.errors import NotFound, Unauthenticated
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import ImageSource, PullProgress, PullRequest
from isulad_py.ports.storage import Layers
from isulad_py.storage.layers import LayerStore
from tests.fakes.images import FakeImageSource
from tests.fakes.registry import FakeRegistry
from tests.fakes.storage import MemoryLayers
from tests.fakes.tasks import TestTasks
from tests.images import File, make_image, tar_layer

PASSWORD = Credentials(username="user", password="secret")


@dataclass
class World:
    source: ImageSource
    layers: Layers
    host: str
    lock: Callable[[], None]
    """Makes the registry want PASSWORD."""


def offer_layers(words: tuple[str, ...]) -> list[Any]:
    return [tar_layer([File(word, word.encode(), uid=os.geteuid(), gid=os.getegid())]) for word in words]


@pytest.fixture(params=["fake", "registry"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if request.param == "fake":
        memory = MemoryLayers()
        fake = FakeImageSource(memory)
        fake.offer("fake.example/one:v1", layers=("base", "one"))
        fake.offer("fake.example/two:v1", layers=("base", "two"))

        def lock_fake() -> None:
            fake.passwords["fake.example"] = PASSWORD

        yield World(source=fake, layers=memory, host="fake.example", lock=lock_fake)
        await fake.close()
        return
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path), tasks=tasks, clock=SystemClock(), boot_id="boot")
    async with FakeRegistry().serve() as registry:
        for name in ("one", "two"):
            registry.put(name, "v1", make_image(offer_layers(("base", name)), config={"Cmd": ["sh"]}))

        def lock_registry() -> None:
            registry.login = ("user", "secret")

        source = RegistryImages(layers=store, options=RegistryOptions(), clock=SystemClock())
        yield World(source=source, layers=store, host=registry.host, lock=lock_registry)
        await source.close()
    await tasks.close()


def request_of(world: World, name: str, **fields: Any) -> PullRequest:
    return PullRequest(reference=parse(f"{world.host}/{name}"), **fields)


async def test_a_pull_by_tag_is_complete(world: World) -> None:
    told: list[PullProgress] = []
    record = await world.source.pull(request_of(world, "one:v1"), told.append)
    assert record.id.startswith("sha256:")
    assert record.repo_tags == (f"{world.host}/one:v1",)
    (digest,) = record.repo_digests
    assert digest.startswith(f"{world.host}/one@sha256:")
    assert record.config.cmd == ("sh",)
    assert record.size_bytes > 0
    assert record.raw_config
    assert {layer.chain_id for layer in record.layers} <= await world.layers.present()
    assert (told[0].step, told[-1].step) == ("resolving", "done")


async def test_a_pull_by_digest_has_no_tag(world: World) -> None:
    by_tag = await world.source.pull(request_of(world, "one:v1"))
    digest = by_tag.repo_digests[0].partition("@")[2]
    for name in (f"one@{digest}", f"one:v1@{digest}"):
        record = await world.source.pull(request_of(world, name))
        assert (record.id, record.layers) == (by_tag.id, by_tag.layers)
        assert record.repo_tags == ()
        assert record.repo_digests == by_tag.repo_digests


async def test_images_share_layers(world: World) -> None:
    one = await world.source.pull(request_of(world, "one:v1"))
    two = await world.source.pull(request_of(world, "two:v1", known=(one,)))
    assert one.layers[0] == two.layers[0]
    assert one.layers[1] != two.layers[1]
    assert len(await world.layers.present()) == 3


async def test_a_pull_of_what_is_known_gives_the_same_image(world: World) -> None:
    one = await world.source.pull(request_of(world, "one:v1"))
    again = await world.source.pull(request_of(world, "one:v1", known=(one,)))
    assert (again.id, again.layers, again.repo_tags) == (one.id, one.layers, one.repo_tags)


@pytest.mark.parametrize("name", ["absent:v1", "one:absent", "one@sha256:" + "0" * 64])
async def test_what_is_not_there_is_not_found(world: World, name: str) -> None:
    with pytest.raises(
        NotFound, match=f"registry {world.host}: image {world.host}/{name.partition('@')[0]}.*: resolve"
    ):
        await world.source.pull(request_of(world, name))
    assert await world.layers.present() == frozenset()


async def test_credentials(world: World) -> None:
    world.lock()
    wrong = Credentials(username="user", password="hunter2")
    for credentials in (None, wrong):
        with pytest.raises(Unauthenticated, match=world.host) as caught:
            await world.source.pull(request_of(world, "one:v1", credentials=credentials))
        assert "hunter2" not in str(caught.value)
    assert await world.layers.present() == frozenset()
    record = await world.source.pull(request_of(world, "one:v1", credentials=PASSWORD))
    assert record.repo_tags == (f"{world.host}/one:v1",)


async def test_pulls_side_by_side(world: World) -> None:
    names = ["one:v1", "two:v1", "one:v1", "two:v1"]
    records = await asyncio.gather(*(world.source.pull(request_of(world, name)) for name in names))
    assert [record.repo_tags for record in records] == [(f"{world.host}/{name}",) for name in names]
    assert len(await world.layers.present()) == 3
