from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.engine.node import Node, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def node(world: World) -> AsyncIterator[Node]:
    async with world.daemon() as node:
        await node.pull()
        yield node
