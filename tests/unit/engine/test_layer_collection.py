from __future__ import annotations

from isulad_py.engine.layer_collection import LayerCollection
from isulad_py.model.ids import ChainId
from tests.fakes.storage import MemoryLayers

OF_AN_IMAGE, ORPHAN, YOUNG = (ChainId(f"sha256:{digit * 64}") for digit in "123")


class Here:
    def __init__(self) -> None:
        self.layers = MemoryLayers()
        for chain_id in (OF_AN_IMAGE, ORPHAN, YOUNG):
            self.layers.add(chain_id)
        self.layers.recent = {OF_AN_IMAGE, YOUNG}
        self.unread: list[str] = []
        self.collection = LayerCollection(layers=self.layers, wanted=lambda: [OF_AN_IMAGE], unread=lambda: self.unread)


async def test_what_belongs_to_no_image_and_is_not_young_goes() -> None:
    here = Here()
    await here.collection.collect()
    assert await here.layers.present() == {OF_AN_IMAGE, YOUNG}
    here.layers.recent.clear()
    await here.collection.collect_owed()
    assert await here.layers.present() == {OF_AN_IMAGE}


async def test_what_was_removed_goes_though_it_is_young() -> None:
    here = Here()
    here.collection.owe([YOUNG, OF_AN_IMAGE])
    await here.collection.collect()
    assert await here.layers.present() == {OF_AN_IMAGE}


async def test_what_is_mounted_goes_when_it_is_not_any_more() -> None:
    here = Here()
    await here.layers.view("volume", (ORPHAN, YOUNG))
    here.collection.owe([YOUNG])
    await here.collection.collect()
    assert await here.layers.present() == {OF_AN_IMAGE, ORPHAN, YOUNG}
    await here.layers.release("volume")
    await here.collection.collect_owed()
    assert await here.layers.present() == {OF_AN_IMAGE}


async def test_what_the_caller_keeps_stays() -> None:
    here = Here()
    await here.collection.collect(frozenset({ORPHAN}))
    assert ORPHAN in await here.layers.present()


async def test_while_suspended_all_stays_and_is_owed() -> None:
    here = Here()
    async with here.collection.suspended():
        here.collection.owe([YOUNG])
        await here.collection.collect()
        assert len(await here.layers.present()) == 3
    await here.collection.collect_owed()
    assert await here.layers.present() == {OF_AN_IMAGE}


async def test_while_an_image_is_unread_all_stays() -> None:
    here = Here()
    here.unread = ["sha256:unread"]
    await here.collection.collect()
    assert len(await here.layers.present()) == 3
    here.unread = []
    await here.collection.collect_owed()
    assert await here.layers.present() == {OF_AN_IMAGE, YOUNG}


async def test_nothing_is_looked_at_that_is_not_owed_but_for_what_failed_pulls_left() -> None:
    here = Here()
    await here.collection.collect_owed()
    assert len(await here.layers.present()) == 3
    assert here.layers.expired == 1
