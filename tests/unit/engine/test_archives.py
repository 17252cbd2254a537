from __future__ import annotations

import pytest

from isulad_py.engine.archives import Archives
from isulad_py.host.tasks import TaskOwner
from isulad_py.model.container import ImageSpec
from isulad_py.model.errors import InvalidInput, NotFound
from tests.fakes.images import FakeArchives
from tests.unit.engine.test_images import Node


class Shop:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.images = node.images
        self.files = FakeArchives(node.layers)
        self.archives = Archives(images=node.images, files=self.files)


@pytest.fixture
async def shop():
    owner = TaskOwner(on_failure=lambda *_: None)
    yield Shop(Node(owner))
    await owner.close()


async def test_loaded_images_have_the_names_of_the_archive_and_ours(shop: Shop) -> None:
    shop.files.offer("/a.tar", "one:1", "two:2")
    loaded = await shop.archives.load("/a.tar")
    assert [record.repo_tags for record in loaded] == [("docker.io/library/one:1",), ("docker.io/library/two:2",)]
    assert shop.images.status("one:1") == loaded[0]
    with pytest.raises(InvalidInput, match="2 images"):
        await shop.archives.load("/a.tar", "mine:1")
    shop.files.offer("/b.tar", "one:1")
    [again] = await shop.archives.load("/b.tar", "mine:1")
    assert again.repo_tags == ("docker.io/library/one:1", "docker.io/library/mine:1")
    assert len(shop.images.list()) == 2


async def test_an_archive_that_fails_leaves_nothing_on_record(shop: Shop) -> None:
    with pytest.raises(InvalidInput):
        await shop.archives.load("/absent.tar")
    assert shop.images.list() == []
    await shop.images.collect_layers()


async def test_saved_under_the_name_that_was_asked_for(shop: Shop) -> None:
    shop.files.offer("/a.tar", "one:1")
    [record] = await shop.archives.load("/a.tar", "mine:1")
    await shop.archives.save("mine:1", "/out.tar", "oci-archive")
    await shop.archives.save(record.id, "/all.tar", "docker-archive")
    assert shop.files.saved["/out.tar"].repo_tags == ("docker.io/library/mine:1",)
    assert shop.files.saved["/all.tar"].repo_tags == record.repo_tags
    with pytest.raises(NotFound):
        await shop.archives.save("absent:1", "/out.tar", "oci-archive")


async def test_an_import_and_a_tag_need_names(shop: Shop) -> None:
    record = await shop.archives.import_rootfs("/root.tar", "made")
    assert record.repo_tags == ("docker.io/library/made:latest",)
    tagged = await shop.archives.tag("made", "example.org/other:1")
    assert (tagged.id, tagged.repo_tags[1:]) == (record.id, ("example.org/other:1",))
    for name in ("made@sha256:" + "0" * 64, "Bad name"):
        with pytest.raises(InvalidInput):
            await shop.archives.tag("made", name)
        with pytest.raises(InvalidInput):
            await shop.archives.import_rootfs("/root.tar", name)


async def test_a_tag_moves(shop: Shop) -> None:
    shop.node.source.offer("one:1")
    shop.node.source.offer("two:2", content="other")
    one = await shop.images.pull(ImageSpec(image="one:1"), None)
    two = await shop.images.pull(ImageSpec(image="two:2"), None)
    await shop.archives.tag("one:1", "two:2")
    assert shop.images.require("two:2").id == one.id
    assert shop.images.require(two.id).repo_tags == ()
