from __future__ import annotations

from pathlib import Path

from isulad_py.config.reference import fields, keys
from isulad_py.config.schema import RegistryEntry, RuntimeEntry

DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_document_says_what_the_code_does() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in (keys(), fields(RuntimeEntry), fields(RegistryEntry)):
        assert f"-->\n{table}\n<!--" in text, "run: nox -s docs"
