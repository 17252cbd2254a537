"""What every implementation of ports.images.ImageArchives does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.host.clock import SystemClock
from isulad_py.images.archives import ArchiveImages
from isulad_py.model.errors import InvalidInput, NotFound
from isulad_py.model.ids import ChainId
from isulad_py.model.reference import parse
from isulad_py.ports.images import ImageArchives
from isulad_py.ports.storage import Layers
from isulad_py.storage.layers import LayerStore
from tests.fakes.images import FakeArchives
from tests.fakes.storage import MemoryLayers
from tests.fakes.tasks import TestTasks
from tests.images import File, Image, make_image, tar, tar_layer
from tests.unit.images.archive_stand import oci_files, write_tar

FORMS = ("docker-archive", "oci-archive")


@dataclass
class World:
    archives: ImageArchives
    layers: Layers
    folder: Path
    offer: Callable[[str, str], str]
    """Makes an archive, of that file name, of an image with that name; gives its path."""
    offer_root: Callable[[str], str]
    """The same for the archive of a root file system."""


def image_of(word: str) -> Image:
    return make_image([tar_layer([File(word, word.encode(), uid=os.geteuid(), gid=os.getegid())])])


@pytest.fixture(params=["fake", "files"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if request.param == "fake":
        memory = MemoryLayers()
        fake = FakeArchives(memory)

        def offer_fake(path: str, name: str) -> str:
            fake.offer(str(tmp_path / path), name)
            return str(tmp_path / path)

        def offer_fake_root(path: str) -> str:
            fake.roots.add(str(tmp_path / path))
            return str(tmp_path / path)

        yield World(fake, memory, tmp_path, offer_fake, offer_fake_root)
        return
    tasks = TestTasks()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=SystemClock(), boot_id="boot")

    def offer_root(path: str) -> str:
        (tmp_path / path).write_bytes(tar([File("etc/root", uid=os.geteuid(), gid=os.getegid())]))
        return str(tmp_path / path)

    yield World(
        ArchiveImages(layers=store, scratch=str(tmp_path)),
        store,
        tmp_path,
        lambda path, name: write_tar(tmp_path / path, oci_files(image_of(name), name)),
        offer_root,
    )
    await tasks.close()


async def test_what_is_loaded_is_complete_and_named(world: World) -> None:
    [record] = await world.archives.load(world.offer("a.tar", "example.org/app:1"))
    assert record.id.startswith("sha256:")
    assert record.repo_tags == ("example.org/app:1",)
    assert record.raw_config
    assert {layer.chain_id for layer in record.layers} == await world.layers.present()
    [again] = await world.archives.load(world.offer("a.tar", "example.org/app:1"))
    assert (again.id, again.layers) == (record.id, record.layers)


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_saved_is_loaded_again(world: World, form: str) -> None:
    [record] = await world.archives.load(world.offer("a.tar", "example.org/app:1"))
    renamed = replace(record, repo_tags=("example.org/other:2",))
    saved = str(world.folder / "saved.tar")
    for image in (record, renamed):  # the second takes the place of the first
        await world.archives.save(image, saved, form)
    [found] = await world.archives.load(saved)
    assert (found.id, found.layers, found.repo_tags) == (record.id, record.layers, ("example.org/other:2",))


async def test_a_root_file_system_is_an_image_of_one_layer(world: World) -> None:
    path = world.offer_root("root.tar")
    record = await world.archives.import_rootfs(path, parse("made:1"))
    assert record.repo_tags == ("docker.io/library/made:1",)
    assert len(record.layers) == 1
    assert {layer.chain_id for layer in record.layers} == await world.layers.present()
    assert (await world.archives.import_rootfs(path, parse("made:2"))).id == record.id


async def test_what_is_not_there_is_named(world: World) -> None:
    absent = str(world.folder / "absent.tar")
    with pytest.raises(InvalidInput, match=absent):
        await world.archives.load(absent)
    with pytest.raises(InvalidInput, match=absent):
        await world.archives.import_rootfs(absent, parse("made:1"))
    assert await world.layers.present() == frozenset()


async def test_what_cannot_be_saved_leaves_no_file(world: World) -> None:
    [record] = await world.archives.load(world.offer("a.tar", "example.org/app:1"))
    saved = str(world.folder / "saved.tar")
    with pytest.raises(InvalidInput, match="zip"):
        await world.archives.save(record, saved, "zip")
    await world.layers.remove({ChainId(layer.chain_id) for layer in record.layers})
    for form in FORMS:
        with pytest.raises(NotFound):
            await world.archives.save(record, saved, form)
    with pytest.raises(InvalidInput, match=saved):
        await world.archives.load(saved)
