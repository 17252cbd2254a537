from __future__ import annotations

import asyncio
import os
from pathlib import Path

from isulad_py.host.cgroup_moves import CgroupMoves


async def settled(moves: CgroupMoves) -> None:
    while moves._moving is not None and not moves._moving.done():
        await asyncio.sleep(0)


async def test_our_own_number_is_written_into_our_own_cgroup(tmp_path: Path) -> None:
    _, controllers, path = Path("/proc/self/cgroup").read_text().splitlines()[-1].split(":", 2)
    name = controllers.split(",")[0] or "unified"
    folder = Path(f"{tmp_path}{path}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").touch()
    moves = CgroupMoves({name: str(tmp_path)})
    moves.warm()
    moves.warm()
    await settled(moves)
    assert (folder / "cgroup.procs").read_text() == str(os.getpid())


async def test_without_cgroups_nothing_happens() -> None:
    moves = CgroupMoves({})
    moves.warm()
    assert moves._moving is None


async def test_a_move_that_is_refused_harms_nobody(tmp_path: Path) -> None:
    moves = CgroupMoves({})
    moves._path = str(tmp_path / "not" / "there")
    moves.warm()
    await settled(moves)
