from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import process
from isulad_py.model.errors import FailedPrecondition, HostFailure
from isulad_py.ports.runtime import HandlerFeatures
from isulad_py.runtime.criu import LOG_TAIL_BYTES, WORDS_LIMIT, environment, explained, last_errors, obstacle

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


def test_a_runtime_is_told_where_criu_is() -> None:
    assert environment("criu") == {}
    assert environment("/opt/x/criu") == {"PATH": f"/opt/x:{process.PATH}"}


def test_the_last_errors_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "dump.log"
    assert last_errors(str(path)) == ""
    lines = [f"(00.{number}) Error (criu/x.c:1): number {number}" for number in range(9)]
    path.write_text(
        "x" * LOG_TAIL_BYTES + "\n" + "\n".join(lines) + "\n(01.0) Unseizing 7\npie: 1: Error (pie.c:2): p\n"
    )
    assert last_errors(str(path)) == "number 7; number 8; p"
    path.write_text("Error (a.c:1): " + "y" * 1000)
    assert last_errors(str(path)) == "y" * WORDS_LIMIT


def test_an_error_with_the_reason(tmp_path: Path) -> None:
    error = HostFailure("checkpoint: criu failed")
    assert explained(error, str(tmp_path / "none")) is error
    (tmp_path / "log").write_bytes(b"Error (x.c:3): \xff a socket\n")
    said = explained(error, str(tmp_path / "log"))
    assert isinstance(said, FailedPrecondition)
    assert str(said) == "checkpoint: criu failed; CRIU: \N{REPLACEMENT CHARACTER} a socket"


async def test_without_criu(tmp_path: Path) -> None:
    assert await obstacle(ABLE, program=str(tmp_path / "no")) == f"{tmp_path}/no is not installed"
    assert await obstacle(ABLE, program="") == "checkpoints are turned off (criu)"
    assert await obstacle(HandlerFeatures(name="x")) == "runtime x is built without CRIU"
