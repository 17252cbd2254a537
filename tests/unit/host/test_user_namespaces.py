"""What the program says when it cannot; real namespaces: tests/integration/host/test_namespaces.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.host import process, user_namespaces
from isulad_py.model.errors import DeadlineExceeded, EngineError, HostFailure, ResourceExhausted
from isulad_py.model.security import IdMapping, NamespaceMode, UserNamespace

IDS = (IdMapping(host_id=100_000, container_id=0, length=65536),)
USERS = UserNamespace(mode=NamespaceMode.POD, uids=IDS, gids=IDS)


def replace_program(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    (folder / "unshare").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "unshare").chmod(0o755)
    monkeypatch.setattr(process, "PATH", f"{folder}:{process.PATH}")


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo unshare failed: No space left on device >&2; exit 1", ResourceExhausted, "No space left"),
        ("echo unshare failed: Operation not permitted >&2; exit 1", HostFailure, "Operation not permitted"),
        ("exit 1", HostFailure, "the program ended"),
        ("exec sleep 1000", DeadlineExceeded, "not within"),
    ],
)
async def test_a_refusal_has_the_programs_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, kind: type[EngineError], words: str
) -> None:
    replace_program(monkeypatch, tmp_path, script)
    if kind is DeadlineExceeded:
        monkeypatch.setattr(user_namespaces, "START_SECONDS", 0.05)
    with pytest.raises(kind, match=f"make a user namespace: .*{words}"):
        async with user_namespaces.held(USERS):
            raise AssertionError("there is none")


async def test_the_program_is_gone_after_the_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replace_program(monkeypatch, tmp_path, 'echo "$@" > "$0.args"; exec cat')
    monkeypatch.setattr(user_namespaces, "_write_maps", lambda pid, users: None)
    async with user_namespaces.held(USERS, ["net", "uts"]) as pid:
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
    assert (tmp_path / "unshare.args").read_text() == "--user --net --uts cat\n"
