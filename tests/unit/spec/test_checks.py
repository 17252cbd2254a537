from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.spec import checks


@pytest.mark.parametrize(("given", "clean"), [("/a/b", "/a/b"), ("/a//b/", "/a/b"), ("/./a", "/a"), ("/", "/")])
def test_an_inner_path_is_made_plain(given: str, clean: str) -> None:
    assert checks.inner_path(given, "f") == clean


@pytest.mark.parametrize(
    "given", ["", "a", "./a", "/a/../b", "/..", "/a\0b", "/" + "a" * 256, "/é" * 1100, "/a" * 1600]
)
def test_a_path_that_is_relative_climbs_or_ends_early_is_refused_by_field(given: str) -> None:
    with pytest.raises(InvalidInput, match="the-field"):
        checks.inner_path(given, "the-field")


def test_a_host_path_may_climb() -> None:
    assert checks.absolute_path("/a/../b", "f") == "/a/../b"


def test_negative_numbers_are_refused_by_field() -> None:
    assert checks.not_negative(0, "f") == 0
    with pytest.raises(InvalidInput, match="the-field"):
        checks.not_negative(-1, "the-field")
