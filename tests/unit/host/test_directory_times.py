"""Times in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import directory_times
from isulad_py.host.directory_times import DirectoryTimes

GIVEN = [(b"", 0), (b"a/b", -1), (b"\xff" * 300, (1 << 40) * 1_000_000_000 + 999_999_999), (b"a/b", 7)]


@pytest.mark.parametrize("memory", [10, 1 << 20])
def test_what_was_added_comes_in_order(tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_times, "MEMORY_BYTES", memory)
    times = DirectoryTimes(str(tmp_path))
    for path, mtime_ns in GIVEN:
        times.add(path, mtime_ns)
    assert list(times) == GIVEN
    assert list(tmp_path.iterdir()) == []
    times.close()
    times.close()
