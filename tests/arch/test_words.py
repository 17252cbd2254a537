"""Names that mean nothing, calls that go past their one place, silenced checks without a reason."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
ATTIC = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}


def test_no_attic(everything: list[Path]) -> None:
    names = {part for path in everything for part in (*path.relative_to(PROJECT).parts[:-1], path.stem)}
    assert names & ATTIC == set()


def test_only_the_command_exits(sources: list[Path]) -> None:
    exits = {
        str(path.relative_to(PROJECT))
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"sys.exit", "exit", "quit", "os._exit"}
    }
    assert exits == {"isulad_py/daemon/cli.py"}


def test_every_silenced_check_says_which(everything: list[Path]) -> None:
    blunt = re.compile(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:))")
    found = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path in everything
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if blunt.search(line)
    ]
    assert found == []


def test_fakes_instead_of_mocks(everything: list[Path]) -> None:
    mocking = [
        str(path.relative_to(PROJECT))
        for path in everything
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any("mock" in name for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)])
    ]
    assert mocking == []


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.create_task(work())",
        "asyncio.create_subprocess_exec('true')",
        "subprocess.run(['true'])",
        "subprocess.Popen(['true'])",
        "os.system('true')",
    ],
)
def test_the_linter_notices_what_is_banned(tmp_path: Path, line: str) -> None:
    """A rule that is configured but not switched on guards nothing."""
    planted = tmp_path / "planted.py"
    planted.write_text(f"import asyncio\nimport os\nimport subprocess\n\n{line}\n")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--config",
        str(PROJECT / "pyproject.toml"),
        "--no-cache",
        str(planted),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "TID251" in done.stdout
