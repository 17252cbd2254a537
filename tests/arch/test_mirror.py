"""Every module has tests at the mirrored path. The debt list names those that have not yet; it may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DEBT = Path(__file__).with_name("untested.txt")
DEBT_LIMIT = 0
"""Lower it with the list; it is never raised."""


def can_run(path: Path) -> bool:
    """Protocols and plain records have nothing that could be tested."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return "ports" not in path.parts and any(
        isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(tree)
    )


def debt() -> set[str]:
    return {line for line in DEBT.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}


def has_tests(path: Path) -> bool:
    """In tests/unit, or in tests/wire and tests/contract, where adapters and servicers are driven."""
    inner = path.relative_to(PROJECT / "isulad_py")
    mirrored = PROJECT / "tests" / "unit" / inner.parent / f"test_{inner.name}"
    candidates = [mirrored, *(PROJECT / "tests" / room / f"test_{inner.name}" for room in ("wire", "contract"))]
    return any(candidate.exists() for candidate in candidates)


def untested(sources: list[Path]) -> set[str]:
    named = {str(path.relative_to(PROJECT)): path for path in sources if path.name != "__init__.py"}
    return {name for name, path in named.items() if can_run(path) and not has_tests(path)}


def test_every_module_has_tests(sources: list[Path]) -> None:
    assert untested(sources) - debt() == set()


def test_the_debt_is_still_owed(sources: list[Path]) -> None:
    assert debt() - untested(sources) == set(), "paid or gone: take them off the list"


def test_the_debt_only_shrinks() -> None:
    assert len(debt()) <= DEBT_LIMIT
