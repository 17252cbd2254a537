"""What SQLite's errors mean to a caller."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from isulad_py.model.errors import DataLoss, EngineError, FailedPrecondition, HostFailure, ResourceExhausted
from isulad_py.storage import records_file as file

PATH = Path("/graph/isulad.db")


def failure(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as sqlite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, ResourceExhausted),
        (sqlite3.SQLITE_TOOBIG, ResourceExhausted),
        (sqlite3.SQLITE_CORRUPT, DataLoss),
        (sqlite3.SQLITE_CORRUPT_INDEX, DataLoss),
        (sqlite3.SQLITE_NOTADB, DataLoss),
        (sqlite3.SQLITE_BUSY, FailedPrecondition),
        (sqlite3.SQLITE_IOERR_WRITE, HostFailure),
    ],
)
def test_each_error_says_what_the_caller_can_do_and_names_the_file(code: int, kind: type[EngineError]) -> None:
    error = file.translate(failure(code), PATH, "pod a")
    assert type(error) is kind
    assert str(PATH) in error.message


def test_an_error_that_is_not_sqlites_own_is_not_a_full_disk() -> None:
    assert not file.is_full(ValueError())
    assert file.is_full(failure(sqlite3.SQLITE_FULL))


def test_a_new_file_is_migrated_once(tmp_path: Path) -> None:
    path = tmp_path / "isulad.db"
    for _ in range(2):
        connection = file.connect(path)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(file.MIGRATIONS),)
        assert connection.execute("PRAGMA application_id").fetchone() == (file.APPLICATION_ID,)
        connection.close()


def test_a_flush_is_of_the_log_and_says_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "isulad.db"
    file.flush(path)  # nothing was written
    connection = file.connect(path)
    file.put(connection, "pod", "a", b"1")
    flushed: list[str] = []
    monkeypatch.setattr("os.fdatasync", lambda fd: flushed.append(str(Path(f"/proc/self/fd/{fd}").readlink())))
    file.flush(path)
    assert flushed == [f"{path}-wal"]

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.fdatasync", fail)
    with pytest.raises(HostFailure, match="flush: Input/output error"):
        file.flush(path)
    connection.close()
