"""A program that leads a group takes what it started with it when it has to be ended."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from isulad_py.host import process


def script(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return (str(path),)


async def until_gone(pid: int) -> None:
    """It is reparented, so its end can only be looked for."""
    async with asyncio.timeout(10):
        while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
            await asyncio.sleep(0)


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
async def test_the_group_ends_with_its_leader(tmp_path: Path, trap: str) -> None:
    os.mkfifo(tmp_path / "pid")
    argv = script(tmp_path, f"{trap} sleep 1000 & echo $! > {tmp_path}/pid; wait; wait")
    reader = asyncio.to_thread((tmp_path / "pid").read_text)
    command = process.Command(argv=argv, timeout_seconds=1000, grace_seconds=0.1, new_session=True)
    running = asyncio.ensure_future(process.run(command))
    child = int(await reader)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until_gone(child)
