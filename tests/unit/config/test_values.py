from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.config.values import directories, duration_seconds, size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(3, 3.0), (0.5, 0.5), ("7", 7.0), ("500ms", 0.5), ("30s", 30.0), ("2m", 120.0), ("1h30m", 5400.0)],
)
def test_durations(text: object, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1d", "2m!", "1 2", True, None, [], {}])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        duration_seconds(text)


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert duration_seconds(text) >= 0


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("30KB", 30720), ("1MB", 1048576), ("2g", 2 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1KB", "1.5MB", "1 day"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        size_bytes(text)


def test_directories_in_every_spelling() -> None:
    for text in ("/a,/b", "/a;/b", "/a:/b", "/a,,/b,"):
        assert directories(text) == ["/a", "/b"]
    assert directories(["/a", "/b"]) == ["/a", "/b"]
    with pytest.raises(TypeError):
        directories(7)
