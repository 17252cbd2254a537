from __future__ import annotations

import asyncio

import pytest

from isulad_py.model.container import ContainerState
from isulad_py.model.errors import HostFailure
from isulad_py.model.pod import PodState
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


async def test_what_was_being_made_when_a_round_began_is_left_alone(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    slow = await node.run_container(pod_id, name="slow")
    world.rootfs.faults.fail_once("remove", HostFailure("busy"))
    with pytest.raises(HostFailure):
        await node.services.containers.remove(slow)
    loop = asyncio.get_running_loop()
    creation, attachment = world.runtime.faults.hold("create"), world.network.faults.hold("attach")
    creating = loop.create_task(node.create(pod_id))
    running = loop.create_task(node.run_pod("other"))
    await world.runtime.faults.wait_entered("create")
    await world.network.faults.wait_entered("attach")
    removal = world.rootfs.faults.hold("remove")
    sweeping = loop.create_task(node.services.sweeper.sweep())
    await world.rootfs.faults.wait_entered("remove")
    creation.set()
    attachment.set()
    container_id, other_id = await creating, await running
    removal.set()
    await sweeping
    assert node.services.queries.container(container_id).state is ContainerState.CREATED
    assert node.services.queries.pod(other_id).state is PodState.READY
    assert container_id in world.runtime.containers


async def test_an_unknown_error_costs_one_object_only(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    first, second = [await node.run_container(pod_id, name=name) for name in ("first", "second")]
    for container_id in (first, second):
        world.rootfs.faults.fail_once("remove", HostFailure("busy"))
        with pytest.raises(HostFailure):
            await node.services.containers.remove(container_id)
    world.rootfs.faults.fail_once("remove", OSError("what nobody thought of"))
    await node.services.sweeper.sweep()
    assert set(node.services.registry.containers) == {first}


async def test_a_round_that_hangs_does_not_hold_back_the_start(node: Node, world: World) -> None:
    world.network.faults.fail["attach"] = world.network.faults.fail["detach"] = HostFailure("plugin failed")
    with pytest.raises(HostFailure):
        await node.run_pod()
    world.network.faults.fail.clear()
    gate = world.network.faults.hold("detach")
    sweeping = node.tasks.start(node.services.sweeper.run(), name="sweeper")
    await node.services.sweeper.first_round(0.01)
    gate.set()
    await node.services.sweeper.first_round(60)
    assert not any(world.traces().values())
    sweeping.cancel()
