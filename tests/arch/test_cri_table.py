"""docs/cri-fields.tsv has a row for every call and field of CRI, and every test that it names exists."""

from __future__ import annotations

import ast
import csv
from functools import cache
from pathlib import Path

import pytest

from tests.cri_client import schema

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "docs" / "cri-fields.tsv"
STATES = {"works", "given back", "refused", "nothing to do", "not on Linux"}
EXPLAINED = {"refused", "nothing to do"}
SHOWN = {"works", "given back", "refused"}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def everything() -> list[str]:
    """Calls, then fields, in the order of the proto file."""
    services = schema().services
    calls = [
        f"{name}/{method.name}" for name in ("RuntimeService", "ImageService") for method in services[name].methods
    ]
    messages = services["RuntimeService"].file.message_types_by_name.values()
    return calls + [f"{message.name}.{field.name}" for message in messages for field in message.fields]


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_call_and_field_has_its_row() -> None:
    assert [row["field"] for row in rows()] == everything()


def test_states_are_known_and_explained() -> None:
    assert {row["state"] for row in rows()} <= STATES
    assert [row["field"] for row in rows() if row["state"] in EXPLAINED and not row["note"]] == []


def test_what_is_claimed_is_tested() -> None:
    assert [row["field"] for row in rows() if row["state"] in SHOWN and not row["tests"]] == []


def test_windows_is_where_the_name_says_so() -> None:
    of_windows = {row["field"] for row in rows() if "windows" in row["field"].lower()}
    assert {row["field"] for row in rows() if row["state"] == "not on Linux"} <= of_windows


@pytest.mark.parametrize("named", sorted({name for row in rows() for name in row["tests"].split(",") if name}))
def test_the_tests_that_are_named_exist(named: str) -> None:
    path, _, function = named.partition("::")
    assert path.startswith("tests/")
    assert function.startswith("test_")
    assert function in functions(path)
