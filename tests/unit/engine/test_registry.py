from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from isulad_py.engine.registry import Registry, encode, pod_name
from isulad_py.model.errors import AlreadyExists, InvalidInput, NotFound, ResourceExhausted
from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord
from tests.fakes.records import MemoryRecords


def pod(identifier: str, name: str = "web") -> PodRecord:
    return PodRecord(id=PodId(identifier), config=PodConfig(metadata=PodMetadata(name=name)), created_at=1)


async def add(registry: Registry, record: PodRecord) -> None:
    await registry.pods.add(record, name=pod_name(record))


async def test_an_object_is_found_by_id_and_by_unique_prefix() -> None:
    registry = Registry(records=MemoryRecords())
    await add(registry, pod("abc1"))
    await add(registry, pod("abd2", "db"))
    assert registry.pods.require("abc1").id == "abc1"
    assert registry.pods.require("abd").id == "abd2"
    assert registry.pods.find("x") is None
    with pytest.raises(InvalidInput, match="2 ids"):
        registry.pods.find("ab")
    with pytest.raises(InvalidInput, match="empty"):
        registry.pods.find("")
    with pytest.raises(NotFound):
        registry.pods.require("x")


async def test_a_name_is_held_until_its_object_is_forgotten() -> None:
    registry = Registry(records=MemoryRecords())
    await add(registry, pod("a1"))
    with pytest.raises(AlreadyExists, match="a1"):
        await add(registry, pod("b2"))
    await registry.pods.forget("a1")
    await registry.pods.forget("a1")
    await add(registry, pod("b2"))


async def test_a_failed_write_changes_nothing() -> None:
    records = MemoryRecords()
    registry = Registry(records=records)
    records.failing = ResourceExhausted("disk full")
    with pytest.raises(ResourceExhausted):
        await add(registry, pod("a1"))
    assert not registry.pods
    records.failing = None
    await add(registry, pod("a1"))
    records.failing = ResourceExhausted("disk full")
    with pytest.raises(ResourceExhausted):
        await registry.pods.amend("a1", lambda old: replace(old, ready_at=5))
    assert registry.pods["a1"].ready_at == 0


class SlowRecords(MemoryRecords):
    """Writes that go on without a caller who has been cancelled, as ports.storage.Records has it."""

    async def put(self, kind: str, key: str, payload: bytes) -> None:
        await super().put(kind, key, payload)
        await asyncio.sleep(0)

    async def delete(self, kind: str, key: str) -> None:
        await super().delete(kind, key)
        await asyncio.sleep(0)


async def cancelled(work: Coroutine[Any, Any, object]) -> None:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_change_is_in_memory_as_on_disk() -> None:
    records = SlowRecords()
    registry = Registry(records=records)

    async def stored() -> Registry:
        again = Registry(records=records)
        await again.load()
        return again

    await cancelled(add(registry, pod("a1")))
    assert registry.pods == (await stored()).pods == {"a1": pod("a1")}
    await cancelled(registry.pods.amend("a1", lambda old: replace(old, ready_at=5)))
    assert registry.pods["a1"].ready_at == (await stored()).pods["a1"].ready_at == 5
    await cancelled(registry.pods.forget("a1"))
    assert registry.pods == (await stored()).pods == {}
    await add(registry, pod("b2"))  # the name is free again


async def test_records_come_back_as_they_were() -> None:
    records = MemoryRecords()
    registry = Registry(records=records)
    await add(registry, pod("a1"))
    await registry.pods.amend("a1", lambda old: replace(old, ready_at=5))
    again = Registry(records=records)
    await again.load()
    assert again.pods == registry.pods
    with pytest.raises(AlreadyExists):
        await add(again, pod("b2"))


@pytest.mark.parametrize("payload", [b"", b"{", b'{"version":99,"record":{}}', b'{"version":1,"record":{"id":3}}'])
async def test_an_unreadable_record_is_put_aside_not_deleted(payload: bytes) -> None:
    records = MemoryRecords()
    await records.put("pod", "bad", payload)
    await records.put("pod", "good", encode(pod("good")))
    registry = Registry(records=records)
    await registry.load()
    assert list(registry.pods) == ["good"]
    assert await registry.quarantined() == {"bad": "pod"}
    assert records.aside[0].payload == payload


async def test_what_has_gone_meanwhile_cannot_be_amended() -> None:
    registry = Registry(records=MemoryRecords())
    with pytest.raises(NotFound):
        await registry.pods.amend("a1", lambda old: old)
