"""The import contracts of pyproject.toml hold, and each of them would notice."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

VIOLATIONS = {
    "one way down": ("storage/planted.py", "import isulad_py.images"),
    "no cycles inside a room": ("runtime/planted.py", "import isulad_py.runtime.planted_too"),
    "pure rooms stay pure": ("model/planted.py", "import asyncio"),
    "engine knows ports, not adapters": ("engine/planted.py", "import isulad_py.host"),
    "messages stay at the wire": ("telemetry/planted.py", "import isulad_py.api"),
}
"""Contract to a module and the line in it that breaks the contract."""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_the_contracts_hold() -> None:
    done = lint_imports(PROJECT)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of a copy in which every contract is broken."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copytree(PROJECT / "isulad_py", copy / "isulad_py", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", copy)
    for path, line in VIOLATIONS.values():
        (copy / "isulad_py" / path).write_text(f'"""Planted."""\n\n{line}\n')
    (copy / "isulad_py/runtime/planted_too.py").write_text("def call():\n    import isulad_py.runtime.planted\n")
    return lint_imports(copy).stdout


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_each_contract_notices_a_planted_violation(broken: str, contract: str) -> None:
    assert f"{contract} BROKEN" in broken


def test_an_unnamed_room_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "isulad_py", tmp_path / "isulad_py", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    (tmp_path / "isulad_py" / "attic").mkdir()
    (tmp_path / "isulad_py" / "attic" / "__init__.py").write_text('"""Planted."""\n')
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert "attic" in done.stdout + done.stderr
