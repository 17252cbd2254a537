"""Pulls that are followed, through the real image service on fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from isulad_py.engine.progress import PullState
from isulad_py.model.container import ImageSpec
from isulad_py.model.errors import NotFound
from tests.unit.engine.node import IMAGE, Node, World

SPEC = ImageSpec(image=IMAGE)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with World().daemon() as node:
        yield node


async def test_states_come_and_the_image_last(node: Node) -> None:
    with node.services.pulls.following(SPEC, None) as states:
        seen = [state async for state in states]
    assert [state.image for state in seen[:-1]] == [None] * (len(seen) - 1)
    assert seen[-1].image == node.services.images.require(IMAGE)
    assert len(seen[-1].layers) == 1


async def test_two_follow_one_pull_and_the_one_who_stays_has_the_image(node: Node) -> None:
    faults = node.world.source.faults
    held = faults.hold("fetch")

    async def follow() -> list[PullState]:
        with node.services.pulls.following(SPEC, None) as states:
            return [state async for state in states]

    first = node.tasks.start(follow(), name="first")
    await faults.wait_entered("fetch")
    with node.services.pulls.following(SPEC, None) as second:
        state = await anext(second)
        assert state.step == "resolving", "who joins hears what was told before"
    held.set()
    assert (await first)[-1].image is not None
    assert len(node.world.source.pulls) == 1


async def test_a_pull_that_nobody_follows_any_more_ends(node: Node) -> None:
    faults = node.world.source.faults
    faults.hold("fetch")
    with node.services.pulls.following(SPEC, None) as states:
        await anext(states)
        await faults.wait_entered("fetch")
    await node.tasks.wait_for({"pull"})
    assert node.services.images.list() == []
    faults.hold("fetch").set()
    await node.pull()


async def test_an_error_reaches_who_follows_and_kills_nobody(node: Node) -> None:
    node.world.source.faults.fail["resolve"] = NotFound("registry: no such image")
    with node.services.pulls.following(SPEC, None) as states, pytest.raises(NotFound):
        [state async for state in states]
    node.world.source.faults.fail["resolve"] = ZeroDivisionError("a bug")
    with node.services.pulls.following(SPEC, None) as states, pytest.raises(ZeroDivisionError):
        [state async for state in states]
    await asyncio.sleep(0)
    assert node.world.deaths == []
