"""The records' file: opening, schema, statements, and what SQLite's errors mean.

Blocking; called by one thread at a time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path
from typing import Final

from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    FailedPrecondition,
    HostFailure,
    ResourceExhausted,
)
from isulad_py.ports.storage import QuarantinedRecord, StoredRecord

APPLICATION_ID: Final = 0x49534C44
"""`ISLD`: tells our file from another program's (SQLite file format, offset 68)."""

RECORD_VERSION: Final = 1
"""Of the payloads' envelope; a row with a higher one is from a newer isulad."""

MIGRATIONS: Final = (
    (
        """CREATE TABLE records (
            kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, payload BLOB NOT NULL,
            PRIMARY KEY (kind, key))""",
        """CREATE TABLE quarantine (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, version, payload,
            reason TEXT NOT NULL, at_ns INTEGER NOT NULL)""",
    ),
)
"""Entry n brings the schema from version n to n + 1 (`user_version`)."""

WAL_BYTES: Final = 8 * 1024 * 1024
"""What the log is cut to after a checkpoint."""

PAYLOAD_BYTES: Final = 64 * 1024 * 1024


def connect(path: Path) -> sqlite3.Connection:
    """An open, checked and migrated file; see `SqliteRecords.open` for the errors."""
    connection: sqlite3.Connection | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_orphaned_log(path)
        # Made by us, because environment variables in it may be secrets; the -wal file inherits the mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
        _prepare(connection, path)
    except sqlite3.Error as error:
        _close(connection)
        raise translate(error, path, "open") from error
    except OSError as error:
        _close(connection)
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise ResourceExhausted(f"records {path}: open: {error.strerror}") from error
        raise HostFailure(f"records {path}: open: {error.strerror or error}") from error
    except BaseException:
        _close(connection)
        raise
    return connection


def flush(path: Path) -> None:
    """Puts the log onto the disk (what has left it is there already, sqlite.org/wal.html), beside whatever the
    connection does meanwhile."""
    try:
        fd = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fdatasync(fd)
    except OSError as error:
        raise HostFailure(f"records {path}: flush: {error.strerror or error}") from error
    finally:
        os.close(fd)


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()


def _refuse_orphaned_log(path: Path) -> None:
    """SQLite deletes a log beside a missing or empty file, and the records in it."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size and not (path.exists() and path.stat().st_size):
        raise _damaged(path, f"missing or empty, but its log {log.name} is there")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Before the first access: the log's index then lives in memory, not in a mapped -shm file that a full disk breaks.
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    _check_ours(connection, path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
    damage = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)") if row[0] != "ok"]
    if damage:
        raise _damaged(path, "; ".join(damage).replace("\n", " "))
    _migrate(connection)


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses another program's file and a newer isulad's, before anything is written."""
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (application or version or tables):
        raise _damaged(path, "it is another program's database")
    if version > len(MIGRATIONS):
        raise FailedPrecondition(
            f"records {path}: written by a newer isulad (schema {version}, this one knows {len(MIGRATIONS)}); "
            "start that one, or give this one another --graph"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN EXCLUSIVE")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
    connection.execute("COMMIT")


def put(connection: sqlite3.Connection, kind: str, key: str, payload: bytes) -> None:
    if len(payload) > PAYLOAD_BYTES:
        raise ResourceExhausted(f"records: {kind} {key}: {len(payload)} bytes are more than {PAYLOAD_BYTES}")
    connection.execute(
        "INSERT INTO records (kind, key, version, payload) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version, payload = excluded.payload",
        (kind, key, RECORD_VERSION, payload),
    )


def delete(connection: sqlite3.Connection, kind: str, key: str) -> None:
    connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", (kind, key))


def load(connection: sqlite3.Connection, kind: str) -> tuple[list[StoredRecord], list[tuple[str, str]]]:
    """The records of a kind in the order of their first writing, and (key, reason) of rows that are none of ours."""
    rows: list[StoredRecord] = []
    strange: list[tuple[str, str]] = []
    query = "SELECT key, version, payload FROM records WHERE kind = ? ORDER BY rowid"
    for key, version, payload in connection.execute(query, (kind,)):
        if not isinstance(version, int) or not 1 <= version <= RECORD_VERSION:
            strange.append((key, f"record version {version!r}, this isulad knows 1 to {RECORD_VERSION}"))
        elif not isinstance(payload, bytes):
            strange.append((key, f"payload of type {type(payload).__name__}"))
        else:
            rows.append(StoredRecord(kind=kind, key=key, payload=payload))
    return rows, strange


def quarantine(connection: sqlite3.Connection, kind: str, key: str, reason: str, at_ns: int) -> None:
    connection.execute(
        "INSERT INTO quarantine (kind, key, version, payload, reason, at_ns)"
        " SELECT kind, key, version, payload, ?, ? FROM records WHERE kind = ? AND key = ?",
        (reason, at_ns, kind, key),
    )
    delete(connection, kind, key)


def quarantined(connection: sqlite3.Connection) -> list[QuarantinedRecord]:
    rows = connection.execute("SELECT kind, key, payload, reason, at_ns FROM quarantine ORDER BY id")
    return [
        QuarantinedRecord(
            kind=kind,
            key=key,
            payload=payload if isinstance(payload, bytes) else str(payload).encode(errors="surrogateescape"),
            reason=reason,
            at=at_ns,
        )
        for kind, key, payload, reason, at_ns in rows
    ]


def discard(connection: sqlite3.Connection, kind: str, key: str) -> None:
    connection.execute("DELETE FROM quarantine WHERE kind = ? AND key = ?", (kind, key))


def checkpoint(connection: sqlite3.Connection) -> None:
    """Moves the log into the file as far as there is room."""
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


def _code(error: BaseException) -> int:
    """SQLite's primary result code, 0 where the error is not its own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_full(error: BaseException) -> bool:
    return _code(error) == sqlite3.SQLITE_FULL


def _damaged(path: Path, detail: str) -> DataLoss:
    return DataLoss(
        f"records {path}: {detail}; nothing was deleted: put a good copy in its place, or move the file and its -wal "
        "aside to start without the pods and containers it knew"
    )


def translate(error: sqlite3.Error, path: Path, step: str) -> EngineError:
    """What the caller can do about an error of SQLite's."""
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return ResourceExhausted(f"records {path}: {step}: no space left on the disk")
    if code == sqlite3.SQLITE_TOOBIG:
        return ResourceExhausted(f"records {path}: {step}: {error}")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return _damaged(path, str(error))
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return FailedPrecondition(f"records {path}: another process has it open")
    return HostFailure(f"records {path}: {step}: {error}")
