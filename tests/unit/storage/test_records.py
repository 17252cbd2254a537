"""What is particular to the SQLite form: durability, damage, a full disk, order and back-pressure."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from isulad_py.model.errors import DataLoss, FailedPrecondition, HostFailure, ResourceExhausted, Unavailable
from isulad_py.storage.records import SqliteRecords

ticks = itertools.count(1_000)


def now_ns() -> int:
    return next(ticks)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph" / "isulad.db"


@pytest.fixture
async def records(path: Path) -> AsyncIterator[SqliteRecords]:
    store = await SqliteRecords.open(path, now_ns=now_ns)
    yield store
    await store.close()


async def contents(store: SqliteRecords, kind: str = "pod") -> dict[str, bytes]:
    return {row.key: row.payload for row in await store.load(kind)}


async def fill(path: Path, count: int = 3) -> None:
    store = await SqliteRecords.open(path, now_ns=now_ns)
    for number in range(count):
        await store.put("pod", f"p{number}", b"x" * 3000)
    await store.close()


def edit(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


async def test_records_outlive_a_close(path: Path) -> None:
    await fill(path)
    store = await SqliteRecords.open(path, now_ns=now_ns)
    assert sorted(await contents(store)) == ["p0", "p1", "p2"]
    await store.close()


async def test_the_file_is_private_and_in_wal_mode(path: Path, records: SqliteRecords) -> None:
    await records.put("pod", "a", b"1")
    log = path.with_name("isulad.db-wal")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert not path.with_name("isulad.db-shm").exists()


async def test_close_waits_for_what_is_queued(path: Path) -> None:
    store = await SqliteRecords.open(path, now_ns=now_ns, queue_limit=4)
    async with asyncio.TaskGroup() as group:
        writes = [group.create_task(store.put("pod", str(n), b"1")) for n in range(4)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.close()
    assert all(task.exception() is None for task in writes)
    again = await SqliteRecords.open(path, now_ns=now_ns)
    assert len(await contents(again)) == 4
    await again.close()


async def test_a_writer_that_waits_for_room_while_closing_is_told(path: Path) -> None:
    held = threading.Event()
    store = await SqliteRecords.open(path, now_ns=now_ns, queue_limit=1, failpoint=lambda *_: held.wait(30) and None)
    first = asyncio.ensure_future(store.put("pod", "first", b"1"))
    second = asyncio.ensure_future(store.put("pod", "second", b"1"))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    assert not second.done()
    held.set()
    await first
    await closing
    with pytest.raises(Unavailable):
        await second


async def test_waiting_writes_become_one_transaction(path: Path) -> None:
    store = await SqliteRecords.open(path, now_ns=now_ns)
    commits: list[str] = []
    store._connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    async with asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(store.put("pod", str(number), b"1"))
    assert len(commits) < 50
    assert len(await contents(store)) == 100
    await store.close()


async def test_a_full_queue_holds_the_writer_back(path: Path) -> None:
    held = threading.Event()
    store = await SqliteRecords.open(path, now_ns=now_ns, queue_limit=2, failpoint=lambda *_: held.wait(30) and None)
    writes = [asyncio.ensure_future(store.put("pod", str(n), b"1")) for n in range(5)]
    await asyncio.sleep(0)
    assert store._jobs.qsize() <= 2
    held.set()
    await asyncio.gather(*writes)
    assert len(await contents(store)) == 5
    await store.close()


async def test_a_cancelled_writer_gives_its_room_back(path: Path) -> None:
    store = await SqliteRecords.open(path, now_ns=now_ns, queue_limit=1)
    for _ in range(3):
        write = asyncio.ensure_future(store.put("pod", "a", b"1"))
        await asyncio.sleep(0)
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
    await store.put("pod", "b", b"2")
    assert "b" in await contents(store)
    await store.close()


async def test_a_cancelled_write_that_fails_says_so(path: Path) -> None:
    """The disk has the former value: a cancellation would have claimed the new one."""
    held = threading.Event()

    def fail(*step: str) -> None:
        assert held.wait(30)
        raise ResourceExhausted("disk full")

    store = await SqliteRecords.open(path, now_ns=now_ns, failpoint=fail)
    write = asyncio.ensure_future(store.put("pod", "a", b"1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    write.cancel()
    held.set()
    with pytest.raises(ResourceExhausted):
        await write
    assert not await contents(store)
    await store.close()


async def test_the_failpoint_sees_each_write_before_and_after_its_commit(path: Path) -> None:
    seen: list[tuple[str, str, str]] = []
    store = await SqliteRecords.open(path, now_ns=now_ns, failpoint=lambda *step: seen.append(step))
    async with asyncio.TaskGroup() as group:
        group.create_task(store.put("pod", "a", b"1"))
        group.create_task(store.put("container", "b", b"1"))
    assert seen == [
        ("before", "pod", "a"),
        ("after", "pod", "a"),
        ("before", "container", "b"),
        ("after", "container", "b"),
    ]
    await store.close()


async def test_a_failpoint_that_raises_before_the_commit_undoes_that_write_alone(path: Path) -> None:
    def refuse(step: str, kind: str, key: str) -> None:
        if (step, key) == ("before", "bad"):
            raise HostFailure("as told")

    store = await SqliteRecords.open(path, now_ns=now_ns, failpoint=refuse)
    results = await asyncio.gather(
        store.put("pod", "good", b"1"),
        store.put("pod", "bad", b"1"),
        store.put("pod", "fine", b"1"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), HostFailure, type(None)]
    assert sorted(await contents(store)) == ["fine", "good"]
    await store.close()


async def test_a_full_disk_fails_that_write_and_keeps_the_former_value(records: SqliteRecords) -> None:
    await records.put("pod", "a", b"former")
    records._connection.execute("PRAGMA max_page_count=16")
    with pytest.raises(ResourceExhausted, match="no space"):
        await records.put("pod", "a", b"x" * 1_000_000)
    assert await contents(records) == {"a": b"former"}
    results = await asyncio.gather(
        records.put("pod", "small", b"1"),
        records.put("pod", "big", b"x" * 1_000_000),
        records.put("pod", "tiny", b"1"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), ResourceExhausted, type(None)]
    await records.delete("pod", "small")
    assert sorted(await contents(records)) == ["a", "tiny"]


async def test_an_oversized_payload_is_refused(records: SqliteRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isulad_py.storage.records_file.PAYLOAD_BYTES", 10)
    with pytest.raises(ResourceExhausted, match="pod a"):
        await records.put("pod", "a", b"12345678901")
    assert await contents(records) == {}


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"this is not a database at all, but long enough to look at" * 40),
        lambda path: overwrite(path, 4096, os.urandom(4096)),
        lambda path: os.truncate(path, path.stat().st_size - 8192),
    ],
    ids=["other file", "scribbled page", "cut short"],
)
async def test_a_damaged_file_is_refused_by_name_and_left_alone(path: Path, damage: Callable[[Path], object]) -> None:
    await fill(path, count=20)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(DataLoss, match=r"(?s)isulad\.db.*nothing was deleted"):
        await SqliteRecords.open(path, now_ns=now_ns)
    assert path.read_bytes() == before


async def test_a_log_without_its_file_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    log = path.with_name("isulad.db-wal")
    log.write_bytes(b"records of which the file is gone")
    with pytest.raises(DataLoss, match=r"isulad\.db-wal"):
        await SqliteRecords.open(path, now_ns=now_ns)
    assert log.read_bytes() == b"records of which the file is gone"


async def test_another_programs_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    edit(path, "CREATE TABLE theirs (a)")
    with pytest.raises(DataLoss, match="another program"):
        await SqliteRecords.open(path, now_ns=now_ns)


async def test_a_newer_schema_is_refused(path: Path) -> None:
    await fill(path)
    edit(path, "PRAGMA user_version=9")
    with pytest.raises(FailedPrecondition, match="newer isulad"):
        await SqliteRecords.open(path, now_ns=now_ns)


async def test_rows_that_are_none_of_ours_are_quarantined_at_load(path: Path) -> None:
    await fill(path)
    edit(path, "UPDATE records SET version = 7 WHERE key = 'p0'")
    edit(path, "UPDATE records SET payload = 'text' WHERE key = 'p1'")
    store = await SqliteRecords.open(path, now_ns=now_ns)
    assert sorted(await contents(store)) == ["p2"]
    aside = await store.quarantined()
    assert [(row.key, row.reason) for row in aside] == [
        ("p0", "record version 7, this isulad knows 1 to 1"),
        ("p1", "payload of type str"),
    ]
    assert aside[1].payload == b"text"
    await store.close()


async def test_a_second_process_is_refused(path: Path, records: SqliteRecords) -> None:
    await records.put("pod", "a", b"1")
    code = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('SELECT * FROM records').fetchall()"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "locked" in done.stderr


async def test_a_directory_in_its_place_is_a_host_failure(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(HostFailure, match=r"isulad\.db"):
        await SqliteRecords.open(path, now_ns=now_ns)


WRITER = """
import asyncio, os, signal, sys, time
from pathlib import Path
from isulad_py.storage.records import SqliteRecords

stop_at, stop_step = int(sys.argv[2]), sys.argv[3]
seen = 0

def failpoint(step, kind, key):
    global seen
    seen += step == stop_step
    if seen == stop_at and step == stop_step:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = await SqliteRecords.open(Path(sys.argv[1]), now_ns=time.time_ns, failpoint=failpoint)
    for number in range(1000):
        await store.put("pod", "counter", str(number).encode())
        await store.put("pod", f"p{number}", b"x" * 5000)
        if number >= 2:
            await store.delete("pod", f"p{number - 2}")

asyncio.run(main())
"""


def expected(commits: int) -> dict[str, int]:
    """Contents after that many of the writer's commits."""
    state: dict[str, int] = {}
    done = 0
    for number in itertools.count():
        steps: list[Callable[[], object]] = [
            lambda n=number: state.update(counter=n),
            lambda n=number: state.update({f"p{n}": 5000}),
        ]
        if number >= 2:
            steps.append(lambda n=number: state.pop(f"p{n - 2}"))
        for step in steps:
            if done == commits:
                return state
            step()
            done += 1
    raise AssertionError


@pytest.mark.parametrize(
    ("stop_at", "stop_step"), [(n, step) for n in (1, 2, 3, 7, 20, 333) for step in ("before", "after")]
)
async def test_kill_9_at_a_write_leaves_what_was_committed(path: Path, stop_at: int, stop_step: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", WRITER, str(path), str(stop_at), stop_step],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    store = await SqliteRecords.open(path, now_ns=now_ns)
    found = {key: int(data) if key == "counter" else len(data) for key, data in (await contents(store)).items()}
    await store.close()
    assert found == expected(stop_at - (stop_step == "before"))


@pytest.mark.root
async def test_a_really_full_disk_keeps_the_former_value(tmp_path: Path) -> None:
    await asyncio.to_thread(subprocess.run, ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], check=True)
    try:
        store = await SqliteRecords.open(tmp_path / "isulad.db", now_ns=now_ns)
        await store.put("pod", "a", b"former")
        with pytest.raises(ResourceExhausted, match="no space"):
            await store.put("pod", "a", b"x" * 500_000)
        assert await contents(store) == {"a": b"former"}
        await store.delete("pod", "a")
        assert await contents(store) == {}
        await store.close()
    finally:
        await asyncio.to_thread(subprocess.run, ["umount", "-l", tmp_path], check=True)
