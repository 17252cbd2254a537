"""Names that are markers, and names that only look like it."""

from __future__ import annotations

import pytest

from isulad_py.images.whiteouts import folder_of_opaque, hidden, is_marker


@pytest.mark.parametrize(
    ("name", "marker", "opaque", "hides"),
    [
        (b"etc/.wh.passwd", True, None, b"etc/passwd"),
        (b".wh.srv/", True, None, b"srv"),
        (b"var/.wh..wh..opq", True, b"var", None),
        (b".wh..wh..opq", True, b"", None),
        (b".wh..wh.plnk/12.34", True, None, None),
        (b"d/.wh.", True, None, b"d/"),
        (b"d/.wh...", True, None, b"d/.."),
        (b".wh.d/file", False, None, None),
        (b"etc/.wh", False, None, None),
        (b"etc/a.wh.b", False, None, None),
        (b"etc", False, None, None),
    ],
)
def test_markers(name: bytes, marker: bool, opaque: bytes | None, hides: bytes | None) -> None:
    assert is_marker(name) is marker
    if marker:
        assert (folder_of_opaque(name), hidden(name)) == (opaque, hides)
