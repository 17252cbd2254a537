from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from tests.unit.streaming.stand import Stand


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The daemon runs on uvloop, whose transports are not asyncio's."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def fresh() -> AsyncIterator[Stand]:
    """Not started yet."""
    stand = Stand()
    yield stand
    await stand.close()


@pytest.fixture
async def stand(fresh: Stand) -> Stand:
    await fresh.start()
    return fresh
