from __future__ import annotations

import asyncio

import pytest

from isulad_py.model.errors import HostFailure
from tests.unit.engine.node import Node, World


async def test_the_sweeper_goes_on_after_an_error(node: Node, world: World) -> None:
    sweeping = asyncio.get_running_loop().create_task(node.services.sweeper.run())
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    world.runtime.faults.fail["delete"] = HostFailure("busy")
    with pytest.raises(HostFailure):
        await node.services.containers.remove(container_id)
    for _ in range(2):
        world.clock.advance(61)
        for _ in range(50):
            await asyncio.sleep(0)
        world.runtime.faults.fail.clear()
    assert container_id not in world.runtime.containers
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
