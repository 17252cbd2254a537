"""Records in one SQLite file (WAL), written by one thread that owns the connection.

Writers queue up on the loop; the thread takes whatever waits and commits it as one transaction. With
`synchronous=NORMAL` a commit is in the kernel's hands when it returns, so it outlives kill -9 of this process at about
the price of a write(); a power cut may lose the last transactions but never the file's consistency
(sqlite.org/wal.html), and after a reboot recovery asks the world anyway. The exclusive locking mode keeps a second
daemon off the same graph root.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from isulad_py.host import blocking
from isulad_py.host.tasks import settled
from isulad_py.model.errors import Unavailable
from isulad_py.ports.storage import QuarantinedRecord, StoredRecord
from isulad_py.storage import records_file as file

T = TypeVar("T")

Failpoint = Callable[[str, str, str], None]
"""Called in the writing thread with `before` or `after`, kind and key, around each commit. While one is set every write
is a transaction of its own, so that a test can stop the process between any two. What it raises fails that write."""

QUEUE_LIMIT: Final = 1024
BATCH_LIMIT: Final = 256


class _Job(Struct, frozen=True, eq=False):
    apply: Callable[[sqlite3.Connection], Any]
    done: asyncio.Future[Any]
    kind: str
    key: str
    writes: bool


Outcome = tuple[_Job, Any, BaseException | None]


class SqliteRecords:
    """Implements ports.storage.Records. Made by `open`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        path: Path,
        now_ns: Callable[[], int],
        failpoint: Failpoint | None = None,
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        self._connection = connection
        self._path = path
        self._now_ns = now_ns
        self._failpoint = failpoint
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(queue_limit)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread_ended = asyncio.Event()
        threading.Thread(target=self._serve, name="records", daemon=True).start()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        now_ns: Callable[[], int],
        failpoint: Failpoint | None = None,
        queue_limit: int = QUEUE_LIMIT,
    ) -> SqliteRecords:
        """Opens or makes the file. Raises DataLoss when it is damaged or not ours, FailedPrecondition when another
        process has it or a newer isulad wrote it, ResourceExhausted when the disk is full; nothing is then lost."""
        connection = await asyncio.to_thread(file.connect, path)
        return cls(connection, path=path, now_ns=now_ns, failpoint=failpoint, queue_limit=queue_limit)

    async def put(self, kind: str, key: str, payload: bytes) -> None:
        await self._write(lambda c: file.put(c, kind, key, payload), kind, key)

    async def delete(self, kind: str, key: str) -> None:
        await self._write(lambda c: file.delete(c, kind, key), kind, key)

    async def flush(self) -> None:
        await blocking.run(file.flush, self._path)

    async def load(self, kind: str) -> list[StoredRecord]:
        """Rows that no program of this version could have written are quarantined on the way, not returned."""
        rows, strange = await self._submit(lambda c: file.load(c, kind), kind, "", writes=False)
        for key, reason in strange:
            await self.quarantine(kind, key, reason)
        return rows

    async def quarantine(self, kind: str, key: str, reason: str) -> None:
        at_ns = self._now_ns()
        await self._write(lambda c: file.quarantine(c, kind, key, reason, at_ns), kind, key)

    async def quarantined(self) -> list[QuarantinedRecord]:
        return await self._submit(file.quarantined, "", "", writes=False)

    async def discard(self, kind: str, key: str) -> None:
        await self._write(lambda c: file.discard(c, kind, key), kind, key)

    async def close(self) -> None:
        """Waits for what is queued. Idempotent; every later call raises Unavailable."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        await self._thread_ended.wait()

    async def _write(self, apply: Callable[[sqlite3.Connection], None], kind: str, key: str) -> None:
        """The thread does not stop for a caller that is cancelled, and that one has to know what is on disk now."""
        name = f"write record {kind}"
        written, cancelled = await settled(self._submit(apply, kind, key, writes=True), name=name)
        written.result()
        if cancelled is not None:
            raise cancelled

    async def _submit(self, apply: Callable[[sqlite3.Connection], T], kind: str, key: str, *, writes: bool) -> T:
        await self._room.acquire()
        if self._closed:
            self._room.release()
            raise Unavailable(f"records {self._path}: closed")
        done: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(apply, done, kind, key, writes))
        return await done

    # Below: the writing thread.

    def _serve(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                outcomes: list[Outcome] = []
                for writes, jobs in itertools.groupby(batch, key=lambda job: job.writes):
                    outcomes += (self._commit if writes else self._read)(list(jobs))
                self._call_loop(self._settle, outcomes)
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._call_loop(self._thread_ended.set)

    def _next_batch(self) -> list[_Job] | None:
        """All that waits, up to the limit; None after the last. Waits for the first."""
        job = self._jobs.get()
        if job is None:
            return None
        batch = [job]
        while len(batch) < BATCH_LIMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _read(self, jobs: list[_Job]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for job in jobs:
            try:
                outcomes.append((job, job.apply(self._connection), None))
            except Exception as error:
                outcomes.append((job, None, self._translated(error, job)))
        return outcomes

    def _commit(self, jobs: list[_Job]) -> list[Outcome]:
        """One transaction for all; where it fails, one for each, so that a write too big fails alone."""
        if self._failpoint is None and len(jobs) > 1:
            try:
                self._transact(jobs)
            except Exception:
                self._roll_back()
            else:
                return [(job, None, None) for job in jobs]
        return [self._commit_one(job) for job in jobs]

    def _commit_one(self, job: _Job) -> Outcome:
        for attempt in (1, 2):
            try:
                self._transact([job])
            except Exception as error:
                self._roll_back()
                if attempt == 1 and file.is_full(error) and self._failpoint is None:
                    file.checkpoint(self._connection)  # the log's space can then be used again
                    continue
                return job, None, self._translated(error, job)
            return job, None, None
        raise AssertionError("unreachable")

    def _transact(self, jobs: list[_Job]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            job.apply(self._connection)
        if self._failpoint is not None:
            self._failpoint("before", jobs[0].kind, jobs[0].key)
        self._connection.execute("COMMIT")
        if self._failpoint is not None:
            self._failpoint("after", jobs[0].kind, jobs[0].key)

    def _roll_back(self) -> None:
        """SQLite has already done it for some errors."""
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _translated(self, error: Exception, job: _Job) -> BaseException:
        if isinstance(error, sqlite3.Error):
            return file.translate(error, self._path, f"{job.kind} {job.key}".strip())
        return error

    def _call_loop(self, call: Callable[..., object], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *args)

    # On the loop again.

    def _settle(self, outcomes: list[Outcome]) -> None:
        for job, value, error in outcomes:
            self._room.release()
            if job.done.done():
                continue  # the caller was cancelled
            if error is None:
                job.done.set_result(value)
            else:
                job.done.set_exception(error)
