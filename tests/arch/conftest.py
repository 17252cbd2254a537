from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "isulad_py"


@pytest.fixture(scope="session")
def sources() -> list[Path]:
    """Every module of ours; generated messages are not."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "api" not in path.relative_to(PACKAGE).parts]


@pytest.fixture(scope="session")
def everything() -> list[Path]:
    """Modules, tests, bench, demo."""
    found = [
        path for room in ("isulad_py", "tests", "bench", "demo", "docs") for path in (PROJECT / room).rglob("*.py")
    ]
    return [path for path in sorted(found) if path.parent != PACKAGE / "api" and PACKAGE / "api" not in path.parents]
