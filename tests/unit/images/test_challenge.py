"""WWW-Authenticate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.images.challenge import parse_challenges


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], []),
        ([""], []),
        (["Basic"], [("basic", {})]),
        (['Basic realm="a b"'], [("basic", {"realm": "a b"})]),
        (
            ['Bearer realm="https://auth/token",service="registry",scope="repository:a/b:pull,push"'],
            [("bearer", {"realm": "https://auth/token", "service": "registry", "scope": "repository:a/b:pull,push"})],
        ),
        (["bearer Realm=https://x , Service = y"], [("bearer", {"realm": "https://x", "service": "y"})]),
        (['Bearer realm="a", Basic realm="b"'], [("bearer", {"realm": "a"}), ("basic", {"realm": "b"})]),
        (['Bearer realm="a"', 'Basic realm="b"'], [("bearer", {"realm": "a"}), ("basic", {"realm": "b"})]),
        (["Negotiate, Basic realm=x"], [("negotiate", {}), ("basic", {"realm": "x"})]),
        ([r'Basic realm="say \"hi\""'], [("basic", {"realm": 'say "hi"'})]),
    ],
)
def test_challenges(headers: list[str], found: list[tuple[str, dict[str, str]]]) -> None:
    assert [(challenge.scheme, challenge.parameters) for challenge in parse_challenges(headers)] == found


@given(st.text('Basicrlm=", \\ab', max_size=60))
def test_any_header_is_read_or_left(text: str) -> None:
    for challenge in parse_challenges([text]):
        assert challenge.scheme
