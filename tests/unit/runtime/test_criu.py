from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.ports.runtime import HandlerFeatures
from isulad_py.runtime.criu import obstacle

ABLE = HandlerFeatures(name="runc", checkpoint=True)


def program(folder: Path, text: str) -> str:
    path = folder / "criu"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('[ "$1" = check ]', ""),
        ("echo 'Error (criu/vdso.c:381): no vDSO' >&2; echo more >&2; exit 1", "Error (criu/vdso.c:381): no vDSO"),
        ("exit 7", "exit status 7"),
    ],
)
async def test_criu_is_asked(tmp_path: Path, script: str, reason: str) -> None:
    found = await obstacle(ABLE, program=program(tmp_path, script))
    assert found.endswith(reason)
    assert bool(found) == bool(reason)


async def test_without_criu(tmp_path: Path) -> None:
    assert await obstacle(ABLE, program=str(tmp_path / "no")) == f"{tmp_path}/no is not installed"
    assert await obstacle(HandlerFeatures(name="x")) == "runtime x is built without CRIU"
