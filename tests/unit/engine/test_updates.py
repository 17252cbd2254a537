from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isulad_py.engine.updates import merge
from isulad_py.model.errors import HostFailure, InvalidInput, ResourceExhausted
from isulad_py.model.resources import HugepageLimit, Resources
from isulad_py.ports.runtime import PutBack
from tests.unit.engine.node import Node, World


async def test_update_merges_and_hands_on(node: Node, world: World) -> None:
    resources = Resources(cpu_shares=512, memory_limit_bytes=1 << 20)
    container_id = await node.run_container(await node.run_pod(), resources=resources)
    await node.services.containers.update(container_id, Resources(cpu_shares=100))
    assert node.services.queries.container(container_id).resources == Resources(
        cpu_shares=100, memory_limit_bytes=1 << 20
    )
    whole = Resources(cpu_shares=100, memory_limit_bytes=1 << 20)
    assert world.runtime.containers[container_id].resources == [whole]


async def test_an_update_sets_no_score_that_it_does_not_name(node: Node, world: World) -> None:
    """A process may have changed its own meanwhile."""
    asked = Resources(cpu_shares=512, oom_score_adj=900)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    await node.services.containers.update(container_id, Resources(cpu_shares=100))
    assert world.runtime.containers[container_id].resources == [Resources(cpu_shares=100)]


async def test_an_update_hands_all_limits_on_again(world: World) -> None:
    """systemd writes some of them over whenever it is told of a change."""
    world.host |= {"cgroup_version": 2, "cgroup_controllers": frozenset({"cpu", "memory"})}
    async with world.daemon() as node:
        await node.pull()
        asked = Resources(unified={"memory.oom.group": "1", "memory.high": "9"})
        container_id = await node.run_container(await node.run_pod(), resources=asked)
        await node.services.containers.update(container_id, Resources(cpu_shares=100, unified={"memory.high": "8"}))
        wanted = Resources(cpu_shares=100, unified={"memory.oom.group": "1", "memory.high": "8"})
        assert world.runtime.containers[container_id].resources == [wanted]
        assert node.services.queries.container(container_id).resources == wanted


async def test_an_update_is_all_or_nothing(node: Node, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    container_id = await node.run_container(await node.run_pod(), resources=Resources(cpu_shares=512))
    container = world.runtime.containers[container_id]
    before = container.limits
    world.runtime.faults.fail_once("update", HostFailure("refused"))
    with pytest.raises(HostFailure):
        await node.services.containers.update(container_id, Resources(cpu_shares=200))
    assert container.limits == before
    assert node.services.queries.container(container_id).updating_to is None
    # And where the runtime has done it, and the record cannot be written.
    update = world.runtime.update

    async def fill_the_disk(*args: Any) -> PutBack:
        world.records.failing = ResourceExhausted("disk full")
        return await update(*args)

    monkeypatch.setattr(world.runtime, "update", fill_the_disk)
    with pytest.raises(ResourceExhausted, match="disk full"):
        await node.services.containers.update(container_id, Resources(cpu_shares=200, cpuset_cpus="1"))
    world.records.failing = None
    assert container.limits == before
    assert node.services.queries.container(container_id).resources == Resources(cpu_shares=512)
    monkeypatch.undo()
    await node.services.containers.update(container_id, Resources(cpu_shares=200))
    assert container.limits.cpu_shares == node.services.queries.container(container_id).resources.cpu_shares == 200


async def test_an_update_whose_caller_goes_away_while_it_is_put_on_record_is_none(
    node: Node, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Resources(cpu_shares=512, oom_score_adj=900)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    container = world.runtime.containers[container_id]
    before, put = container.limits, world.records.put
    writing = asyncio.Event()

    async def hang_once(kind: str, key: str, payload: bytes) -> None:
        """At the fact, after the intent. What a cancellation lets go on is written (ports.storage.Records)."""
        await put(kind, key, payload)
        if container.limits != before:
            monkeypatch.setattr(world.records, "put", put)
            writing.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(world.records, "put", hang_once)
    wanted = Resources(cpu_shares=200, oom_score_adj=950)
    updating = asyncio.ensure_future(node.services.containers.update(container_id, wanted))
    await writing.wait()
    assert container.limits != before
    updating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await updating
    assert container.limits == before
    assert node.services.queries.container(container_id).resources == asked
    await node.services.registry.containers.load(lambda record: record.name)
    assert node.services.queries.container(container_id).resources == asked


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (Resources(cpu_quota_us=5), r"linux\.cpu_quota"),
        (Resources(cpuset_cpus="a-b"), r"linux\.cpuset_cpus"),
        (Resources(memory_limit_bytes=1 << 30), r"linux\.memory_swap_limit_in_bytes"),
        (Resources(oom_score_adj=2000), r"oom_score_adj"),
        (Resources(unified={"memory.high": "1"}), r"linux\.unified"),
    ],
)
async def test_limits_that_cannot_be_are_refused_before_any_effect(
    node: Node, world: World, wanted: Resources, field: str
) -> None:
    asked = Resources(memory_limit_bytes=1 << 20, memory_swap_limit_bytes=1 << 21)
    container_id = await node.run_container(await node.run_pod(), resources=asked)
    with pytest.raises(InvalidInput, match=field):
        await node.services.containers.update(container_id, wanted)
    assert world.runtime.containers[container_id].resources == []


async def test_a_container_without_swap_stays_without(node: Node, world: World) -> None:
    asked = Resources(memory_limit_bytes=1 << 20, memory_swap_limit_bytes=1 << 20)
    container_id = await node.create(await node.run_pod(), resources=asked)
    await node.services.containers.update(container_id, Resources(memory_limit_bytes=1 << 22))
    both = Resources(memory_limit_bytes=1 << 22, memory_swap_limit_bytes=1 << 22)
    assert world.runtime.containers[container_id].resources == [both]
    assert node.services.queries.container(container_id).resources == both


def test_page_sizes_and_files_are_merged_one_by_one() -> None:
    old = Resources(
        hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=1), HugepageLimit(page_size="1GB", limit_bytes=2)),
        unified={"memory.high": "1", "cpu.weight": "2"},
    )
    new = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=3),), unified={"memory.high": "4"})
    merged = merge(old, new)
    assert {limit.page_size: limit.limit_bytes for limit in merged.hugepage_limits} == {"2MB": 3, "1GB": 2}
    assert merged.unified == {"memory.high": "4", "cpu.weight": "2"}


async def test_hugepage_limits_of_zero_are_dropped_where_nothing_counts_them(node: Node, world: World) -> None:
    zero = Resources(hugepage_limits=(HugepageLimit(page_size="2MB", limit_bytes=0),))
    container_id = await node.run_container(await node.run_pod(), resources=zero)
    assert b"hugepageLimits" not in world.runtime.containers[container_id].launch.spec
    await node.services.containers.update(container_id, zero)
    assert world.runtime.containers[container_id].resources == [Resources()]
