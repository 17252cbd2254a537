from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from isulad_py.host import process
from isulad_py.model.errors import HostFailure
from isulad_py.runtime.apparmor import KernelProfiles
from isulad_py.spec.apparmor_default import NAME, PROFILE


def parser(folder: Path, script: str) -> str:
    path = folder / "parser"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def test_ours_is_loaded_once_however_many_ask(tmp_path: Path) -> None:
    listing, seen = tmp_path / "profiles", tmp_path / "seen"
    listing.write_text("")
    program = parser(tmp_path, f'echo "$@" >>{seen}; cat >>{seen}; echo "{NAME} (enforce)" >>{listing}')
    profiles = KernelProfiles(listing=str(listing), parser=program)
    await asyncio.gather(*(profiles.require(NAME) for _ in range(5)))
    assert seen.read_text() == f"--replace --skip-cache\n{PROFILE}"


async def test_a_parser_that_fails_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("other (complain)\n")
    program = parser(tmp_path, "echo no such rule >&2; exit 1")
    profiles = KernelProfiles(listing=str(tmp_path / "profiles"), parser=program)
    with pytest.raises(HostFailure, match=r"AppArmor profile: parser exited with 1: no such rule"):
        await profiles.require(NAME)


async def test_a_listing_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(HostFailure, match="list AppArmor profiles"):
        await KernelProfiles(listing=str(tmp_path)).require("any")


def test_without_a_parser_there_is_no_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "PATH", str(tmp_path))
    assert KernelProfiles().default_name() == ""
    monkeypatch.setattr(process, "PATH", os.fspath(Path(parser(tmp_path, "")).parent))
    assert KernelProfiles(parser="parser").default_name() == NAME
