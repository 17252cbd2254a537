"""Records in memory. Passes tests/contract/test_records.py."""

from __future__ import annotations

from isulad_py.model.errors import EngineError, Unavailable
from isulad_py.ports.storage import QuarantinedRecord, StoredRecord


class MemoryRecords:
    """Implements ports.storage.Records. `failing` makes every write fail until it is cleared; `journal` tells what was
    written, in order."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}
        self.aside: list[QuarantinedRecord] = []
        self.journal: list[tuple[str, str, str]] = []
        self.failing: EngineError | None = None
        self._closed = False

    async def put(self, kind: str, key: str, payload: bytes) -> None:
        self._check_write()
        self.rows[kind, key] = payload
        self.journal.append(("put", kind, key))

    async def delete(self, kind: str, key: str) -> None:
        self._check_write()
        self.rows.pop((kind, key), None)
        self.journal.append(("delete", kind, key))

    async def flush(self) -> None:
        self._check_open()
        self.journal.append(("flush", "", ""))

    async def load(self, kind: str) -> list[StoredRecord]:
        self._check_open()
        return [StoredRecord(kind=k, key=key, payload=data) for (k, key), data in self.rows.items() if k == kind]

    async def quarantine(self, kind: str, key: str, reason: str) -> None:
        self._check_write()
        payload = self.rows.pop((kind, key), None)
        if payload is not None:
            at = len(self.aside) + 1
            self.aside.append(QuarantinedRecord(kind=kind, key=key, payload=payload, reason=reason, at=at))

    async def quarantined(self) -> list[QuarantinedRecord]:
        self._check_open()
        return list(self.aside)

    async def discard(self, kind: str, key: str) -> None:
        self._check_write()
        self.aside = [row for row in self.aside if (row.kind, row.key) != (kind, key)]

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("records: closed")

    def _check_write(self) -> None:
        self._check_open()
        if self.failing is not None:
            raise type(self.failing)(self.failing.message)
