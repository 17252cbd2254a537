"""Layers in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.ids import ChainId
from isulad_py.storage.loans import Loans, read_note, write_note

A, B, C = (ChainId(f"sha256:{letter * 64}") for letter in "abc")


def test_a_layer_is_lent_as_long_as_anybody_has_it() -> None:
    loans = Loans()
    assert loans.lent() == frozenset()
    loans.lend("one", [A, B])
    loans.lend("two", [B, C])
    assert loans.lent() == {A, B, C}
    loans.take_back("one")
    loans.take_back("one")
    assert loans.lent() == {B, C}
    loans.lend("two", [])
    assert loans.lent() == frozenset()


def test_notes(tmp_path: Path) -> None:
    assert read_note(str(tmp_path)) is None
    write_note(str(tmp_path), (A, B))
    assert read_note(str(tmp_path)) == (A, B)
    write_note(str(tmp_path), ())
    assert read_note(str(tmp_path)) == ()


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff"])
def test_what_cannot_be_read_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "layers.json").write_bytes(text)
    assert read_note(str(tmp_path)) is None
