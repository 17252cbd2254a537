"""Every room says what it owns and where its tests are, and its `__init__` does nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "isulad_py"
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "api")
ALL = sorted(path for path in PACKAGE.glob("*/**/__init__.py") if "api" not in path.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_door_plate(room: Path) -> None:
    plate = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert "Tests: tests/" in plate
    assert "import" in plate.lower() or room.name == "engine"


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(PACKAGE).parent))
def test_packages_hold_nothing_but_their_plate(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def test_the_tests_that_a_plate_names_exist() -> None:
    for room in ROOMS:
        plate = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        for named in re.findall(r"tests/[a-z/_]+", plate):
            assert (PACKAGE.parent / named).is_dir(), f"{room.name}: {named}"
