from __future__ import annotations

import pytest

from isulad_py.engine.queries import ContainerFilter
from isulad_py.model.errors import FailedPrecondition, NotFound
from tests.unit.engine.node import Node, World

SECOND = 1_000_000_000


async def test_cpu_rates_come_from_two_samples(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod())
    path = node.services.queries.container(container_id).cgroup_path
    world.sampler.put(path, timestamp=SECOND, cpu_usage_ns=5 * SECOND)
    record, sample = await node.services.stats.container(container_id)
    assert record.id == container_id
    assert sample.nano_cores is None
    world.sampler.put(path, timestamp=3 * SECOND, cpu_usage_ns=6 * SECOND)
    assert (await node.services.stats.container(container_id))[1].nano_cores == SECOND // 2
    # Asked again at once: the same rate, not a rate over no time.
    world.sampler.put(path, timestamp=3 * SECOND + 5, cpu_usage_ns=6 * SECOND + 5)
    assert (await node.services.stats.container(container_id))[1].nano_cores == SECOND // 2


async def test_only_what_has_a_process_is_measured(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    running = await node.run_container(pod_id, name="a")
    ended = await node.run_container(pod_id, "true", name="b")
    await node.until_exited(ended)
    for container_id in (running, ended):
        world.sampler.put(node.services.queries.container(container_id).cgroup_path, timestamp=1)
    found = await node.services.stats.containers(ContainerFilter())
    assert [record.id for record, _ in found] == [running]
    assert world.sampler.calls == 1
    with pytest.raises(NotFound):
        await node.services.stats.container("unknown")
    world.sampler.drop(node.services.queries.container(running).cgroup_path)
    with pytest.raises(FailedPrecondition):
        await node.services.stats.container(running)


async def test_a_pod_sums_up_its_containers(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    world.sampler.put(node.services.queries.pod(pod_id).cgroup_path, timestamp=1, cpu_usage_ns=3)
    for name in ("a", "b"):
        container_id = await node.run_container(pod_id, name=name)
        world.sampler.put(node.services.queries.container(container_id).cgroup_path, timestamp=1, processes=2)
    calls = world.sampler.calls
    _, sample = await node.services.stats.pod(pod_id)
    assert world.sampler.calls == calls + 1
    assert sample.process_count == 4
    assert len(sample.containers) == 2
    assert sample.interfaces
    await node.services.pods.stop(pod_id)
    with pytest.raises(FailedPrecondition):
        await node.services.stats.pod(pod_id)
    assert await node.services.stats.pods() == []
