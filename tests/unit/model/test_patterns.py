"""Patterns that operators write."""

from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.model.patterns import check_pattern, is_found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("", "", True),
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^/usr/bin/(sh|ls)$", "/usr/bin/ls", True),
        ("(?i)A\u00dc", "xa\u00fcx", True),
        ("^.$", "\u00fc", True),
        (r"\d{3}", "12", False),
        ("a", "\udcffa", True),
    ],
)
def test_what_is_found(pattern: str, text: str, *, found: bool) -> None:
    assert is_found(pattern, text) is found


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?=a)", r"(a)\1", "a{2000}", "((a{99}){99}){99}", "\udcff"])
def test_what_is_no_pattern(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="is no regular expression: "):
        check_pattern(pattern)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", "^(a|a?)+$", "(.*a){20}$", "(x+x+)+y"])
def test_no_pattern_goes_through_a_text_again_and_again(pattern: str) -> None:
    """A matcher that does would not come back from this one."""
    assert not is_found(pattern, "a" * 50_000 + "xb")
