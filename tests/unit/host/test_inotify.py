from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host.inotify import DirectoryWatch
from isulad_py.model.errors import EngineError


class Seen:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.watch = DirectoryWatch(self.event.set)

    async def change(self) -> None:
        async with asyncio.timeout(10):
            await self.event.wait()
        self.event.clear()


@pytest.fixture
async def seen() -> Iterator[Seen]:  # type: ignore[misc]
    seen = Seen()
    yield seen
    seen.watch.close()
    seen.watch.close()


async def test_files_that_come_change_and_go(seen: Seen, tmp_path: Path) -> None:
    seen.watch.aim({str(tmp_path): ""})
    (tmp_path / "a").write_text("1")
    await seen.change()
    (tmp_path / "part").write_text("2")
    await seen.change()
    (tmp_path / "part").rename(tmp_path / "a")
    await seen.change()
    (tmp_path / "a").unlink()
    await seen.change()


async def test_only_the_named_entry_matters(seen: Seen, tmp_path: Path) -> None:
    seen.watch.aim({str(tmp_path): "wanted"})
    (tmp_path / "other").mkdir()
    (tmp_path / "fence").mkdir()
    heard: list[bool] = []
    seen.watch._on_change = lambda: heard.append(True)
    seen.watch._on_ready()
    assert not heard
    seen.watch._on_change = seen.event.set
    (tmp_path / "wanted").mkdir()
    await seen.change()


async def test_the_directory_itself_goes(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    seen.watch.aim({str(tmp_path / "d"): ""})
    (tmp_path / "d").rename(tmp_path / "e")
    await seen.change()
    (tmp_path / "d").mkdir()
    seen.watch.aim({str(tmp_path / "d"): ""})
    (tmp_path / "d" / "file").touch()
    await seen.change()
    (tmp_path / "d" / "file").unlink()
    await seen.change()
    (tmp_path / "d").rmdir()
    await seen.change()


async def test_aiming_elsewhere_forgets(seen: Seen, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    seen.watch.aim({str(tmp_path / "a"): ""})
    seen.watch.aim({str(tmp_path / "b"): ""})
    heard: list[bool] = []
    seen.watch._on_change = lambda: heard.append(True)
    (tmp_path / "a" / "file").touch()
    seen.watch._on_ready()
    assert not heard
    (tmp_path / "b" / "file").touch()
    seen.watch._on_ready()
    assert heard


async def test_lost_events_are_a_change(seen: Seen, tmp_path: Path) -> None:
    seen.watch.aim({str(tmp_path): "never"})
    assert seen.watch._matters(-1, 0x4000, "")


async def test_what_cannot_be_watched(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(EngineError, match="watch"):
            seen.watch.aim({str(path): ""})
