"""Every direct dependency is pinned, and says why it is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def requirements() -> list[str]:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = [item for items in project["optional-dependencies"].values() for item in items]
    return [*project["dependencies"], *(item for item in extras if not item.startswith(project["name"]))]


def test_every_dependency_is_pinned() -> None:
    loose = [item for item in requirements() if not re.fullmatch(r"[A-Za-z0-9_.-]+(\[[a-z-]+\])?==[0-9a-z.]+", item)]
    assert loose == []


def test_every_run_time_dependency_gives_its_reason() -> None:
    text = PYPROJECT.read_text(encoding="utf-8")
    section = text[text.index("dependencies = [") : text.index("]\n", text.index("dependencies = ["))]
    lines = [line for line in section.splitlines()[1:] if line.strip().startswith('"')]
    assert lines
    assert [line for line in lines if "#" not in line] == []
