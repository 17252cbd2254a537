from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.wire.translate import checks


def test_text_of_one_line() -> None:
    assert checks.name("", "f") == ""
    assert checks.name("ü b", "f") == "ü b"
    for bad in ("\0", "a\nb", "\x7f", "\x1b[0m"):
        with pytest.raises(InvalidInput, match=r"^f has control characters"):
            checks.name(bad, "f")


def test_relative_paths_stay_inside() -> None:
    assert checks.inside("", "f") == ""
    assert checks.inside("a//b/./c", "f") == "a/b/c"
    assert checks.inside("a/..b", "f") == "a/..b"
    assert checks.inside("a/" + "b" * 255, "f") == "a/" + "b" * 255
    for bad in ("/a", "..", "a/../b", "a/..", "a/" + "b" * 256, "é" * 128):
        with pytest.raises(InvalidInput, match=r"^f: "):
            checks.inside(bad, "f")


def test_addresses() -> None:
    for good in ("", "127.0.0.1", "::1"):
        assert checks.address(good, "f") == good
    with pytest.raises(InvalidInput, match=r"^f: '127\.1' is not an IP address"):
        checks.address("127.1", "f")


def test_ports() -> None:
    assert [checks.port(value, "f") for value in (0, 65535)] == [0, 65535]
    with pytest.raises(InvalidInput, match=r"^f: 65536 is not a port"):
        checks.port(65536, "f")
