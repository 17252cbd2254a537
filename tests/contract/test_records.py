"""What every implementation of ports.storage.Records does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.model.errors import Unavailable
from isulad_py.ports.storage import Records
from isulad_py.storage.records import SqliteRecords
from tests.fakes.records import MemoryRecords


@pytest.fixture(params=["memory", "sqlite"])
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Records]:
    store: Records
    if request.param == "memory":
        store = MemoryRecords()
    else:
        store = await SqliteRecords.open(tmp_path / "isulad.db", now_ns=time.time_ns)
    yield store
    await store.close()


async def contents(records: Records, kind: str) -> dict[str, bytes]:
    return {row.key: row.payload for row in await records.load(kind)}


async def test_a_put_is_loaded_under_its_kind_only(records: Records) -> None:
    await records.put("pod", "a", b"1")
    await records.put("container", "a", b"2")
    rows = await records.load("pod")
    assert [(row.kind, row.key, row.payload) for row in rows] == [("pod", "a", b"1")]


async def test_a_second_put_replaces_the_first(records: Records) -> None:
    await records.put("pod", "a", b"1")
    await records.put("pod", "a", b"\x00\xff")
    assert await contents(records, "pod") == {"a": b"\x00\xff"}


@pytest.mark.parametrize("delay", range(4))
async def test_a_cancellation_does_not_cut_a_write_short(records: Records, delay: int) -> None:
    """Who is told of the cancellation knows what the disk has."""
    await records.put("pod", "old", b"1")
    writes = [
        asyncio.ensure_future(records.put("pod", "new", b"2")),
        asyncio.ensure_future(records.delete("pod", "old")),
    ]
    for _ in range(1 + delay):
        await asyncio.sleep(0)
    for write in writes:
        write.cancel()
        write.cancel()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert all(outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    assert await contents(records, "pod") == {"new": b"2"}


async def test_what_was_put_aside_can_be_discarded(records: Records) -> None:
    for key in ("a", "b"):
        await records.put("image", key, b"{")
        await records.quarantine("image", key, "unreadable")
    await records.discard("image", "a")
    await records.discard("image", "a")
    await records.discard("pod", "b")
    assert [row.key for row in await records.quarantined()] == ["b"]


async def test_an_unknown_kind_is_empty(records: Records) -> None:
    assert await records.load("nothing") == []


async def test_an_empty_payload_and_a_strange_key_come_back(records: Records) -> None:
    await records.put("image", "sha256:ä/'\"", b"")
    assert await contents(records, "image") == {"sha256:ä/'\"": b""}


async def test_delete_is_idempotent(records: Records) -> None:
    await records.put("pod", "a", b"1")
    await records.delete("pod", "a")
    await records.delete("pod", "a")
    await records.delete("pod", "never")
    assert await records.load("pod") == []


async def test_records_come_back_in_the_order_of_their_first_writing(records: Records) -> None:
    for key in ("c", "a", "b"):
        await records.put("pod", key, b"1")
    await records.put("pod", "c", b"2")
    assert [row.key for row in await records.load("pod")] == ["c", "a", "b"]


async def test_writes_of_one_key_keep_their_order(records: Records) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(records.put("pod", "a", str(number).encode()))
    assert await contents(records, "pod") == {"a": b"299"}


async def test_a_flush_goes_beside_writes(records: Records) -> None:
    await records.flush()
    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(records.put("pod", str(number), b"1"))
            group.create_task(records.flush())
    assert len(await records.load("pod")) == 50


async def test_quarantine_moves_aside_and_keeps_reason_time_and_bytes(records: Records) -> None:
    await records.put("pod", "bad", b"{not json")
    await records.put("pod", "good", b"{}")
    await records.quarantine("pod", "bad", "not json")
    assert await contents(records, "pod") == {"good": b"{}"}
    (aside,) = await records.quarantined()
    assert (aside.kind, aside.key, aside.payload, aside.reason) == ("pod", "bad", b"{not json", "not json")
    assert aside.at > 0


async def test_a_key_can_be_quarantined_twice(records: Records) -> None:
    for payload in (b"1", b"2"):
        await records.put("pod", "bad", payload)
        await records.quarantine("pod", "bad", "no")
    assert [row.payload for row in await records.quarantined()] == [b"1", b"2"]


async def test_quarantine_of_the_unknown_does_nothing(records: Records) -> None:
    await records.quarantine("pod", "never", "no")
    assert await records.quarantined() == []


async def test_close_is_idempotent_and_ends_service(records: Records) -> None:
    await records.close()
    await records.close()
    with pytest.raises(Unavailable):
        await records.put("pod", "a", b"1")
    with pytest.raises(Unavailable):
        await records.load("pod")
