"""What the documents show must be so: parts made from code, flags, keys, files, links."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from isulad_py.config.flags import parser
from isulad_py.config.keys import BY_NAME
from isulad_py.config.schema import Config

PROJECT = Path(__file__).resolve().parents[3]
DOCUMENTS = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
NAMES = [document.name for document in DOCUMENTS]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """docs/generate.py is a script, not a package."""
    found = importlib.util.spec_from_file_location("docs_generate", PROJECT / "docs" / "generate.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_made_parts_are_what_the_code_says(generate: ModuleType) -> None:
    assert generate.aged() == [], "run: nox -s docs"


def test_every_document_with_made_parts_is_renewed(generate: ModuleType) -> None:
    marked = {str(document.relative_to(PROJECT)) for document in DOCUMENTS if "<!-- made: " in text_of(document)}
    assert marked <= set(generate.DOCUMENTS)


def test_an_aged_part_is_seen(generate: ModuleType) -> None:
    text = "a\n<!-- made: pod-lifecycle -->\nold\n<!-- made end -->\nb"
    renewed = generate.renewed(text)
    assert renewed != text
    assert generate.renewed(renewed) == renewed


def test_a_diagram_has_every_move(generate: ModuleType) -> None:
    lines = generate.diagram(generate.POD_MOVES).splitlines()
    moves = sum(len(targets) for targets in generate.POD_MOVES.values())
    assert sum("[*]" not in line and "-->" in line for line in lines) == moves


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text_of(document)):
        if not target.startswith(("http://", "https://")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_anchors_exist(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", text_of(document)):
        there = document.parent / target if target else document
        headings = re.findall(r"^#+ (.+)$", text_of(there), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(r"`((?:isulad_py|tests|bench|demo|docs|protos|systemd|\.ci)/[\w./-]*)`", text_of(document))
    shown = re.findall(
        r"(?<![\w/.])((?:tests|bench|demo|systemd|\.ci)/[\w.-]+)", "".join(blocks(text_of(document), "sh"))
    )
    for path in {*named, *shown}:
        assert (PROJECT / path).exists(), f"{document.name} names {path}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_flags_of_the_daemon_exist(document: Path) -> None:
    known = {option for action in parser()._actions for option in action.option_strings}
    for line in re.findall(r"`isulad (--[^`]+)`|^isulad (--.+)$", text_of(document), re.MULTILINE):
        for flag in re.findall(r"--[a-z.-]+", " ".join(line)):
            assert flag in known, f"{document.name} shows isulad {flag}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_json_that_is_shown_can_be_read(document: Path) -> None:
    for block in blocks(text_of(document), "json"):
        json.loads(block)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_keys_with_a_value_are_keys(document: Path) -> None:
    for name in re.findall(r'`"([a-z.-]+)": ', text_of(document)):
        assert name in BY_NAME, f"{document.name} shows {name}"


@pytest.mark.parametrize(
    "name", re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text_of(PROJECT / "docs" / "operations.md")), ids=str
)
def test_hyphenated_names_in_operations_are_keys(name: str) -> None:
    assert name in BY_NAME


def test_places_are_the_defaults() -> None:
    text = text_of(PROJECT / "docs" / "operations.md")
    config = Config()
    for path in (*(host.removeprefix("unix://") for host in config.hosts), config.graph, config.state, config.pidfile):
        assert f"`{path}`" in text
    assert f"`metrics-port` ({config.metrics_port})" in text


def test_readme_has_the_two_commands() -> None:
    shown = "".join(blocks(text_of(PROJECT / "README.md"), "sh"))
    assert "sudo demo/run\n" in shown
    assert "sudo tests/run\n" in shown
