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


def test_straight_paths_are_absolute_and_climb_nowhere() -> None:
    assert checks.straight_or_empty("", "f") == ""
    assert checks.straight("/a/..data/b", "f") == "/a/..data/b"
    for bad in ("", "a", "/..", "/a/../b", "/a/.."):
        with pytest.raises(InvalidInput, match=r"^f"):
            checks.straight(bad, "f")


def test_lists_have_an_end() -> None:
    longest = ["a"] * checks.LIST_MAX
    assert checks.names(longest, "f") == tuple(longest)
    with pytest.raises(InvalidInput, match=r"^f: 4097 are more than 4096"):
        checks.names([*longest, "a"], "f")


def test_addresses() -> None:
    for good in ("", "127.0.0.1", "::1"):
        assert checks.address(good, "f") == good
    with pytest.raises(InvalidInput, match=r"^f: '127\.1' is not an IP address"):
        checks.address("127.1", "f")


def test_ports() -> None:
    assert [checks.port(value, "f") for value in (0, 65535)] == [0, 65535]
    with pytest.raises(InvalidInput, match=r"^f: 65536 is not a port"):
        checks.port(65536, "f")


def test_no_text_is_without_end() -> None:
    assert len(checks.name("x" * checks.TEXT_MAX, "f")) == checks.TEXT_MAX
    for check in (checks.name, checks.required_name, checks.path, checks.absolute, checks.inside):
        with pytest.raises(InvalidInput, match=r"^f is longer than 4095 bytes"):
            check("\u00fc" * 2048, "f")


def test_no_part_of_a_path_is_longer_than_a_file_name() -> None:
    longest = "a" * checks.FILE_NAME_MAX
    assert checks.absolute(f"/{longest}/{longest}", "f") == f"/{longest}/{longest}"
    with pytest.raises(InvalidInput, match=r"^f: 'a{80}' goes on beyond 255 bytes"):
        checks.absolute(f"/b/{longest}a/c", "f")
    with pytest.raises(InvalidInput, match=r"^f: 'a{80}' goes on beyond 255 bytes"):
        checks.inside(f"{longest}a", "f")


def test_keys_and_values() -> None:
    found = {"a.b/c": "two\nlines", "": ""}
    assert checks.keyed(found, "f") == found
    with pytest.raises(InvalidInput, match=r"^f\[a\] has a NUL"):
        checks.keyed({"a": "b\0"}, "f")
    with pytest.raises(InvalidInput, match=r"^f: a key has control characters"):
        checks.keyed({"a\nb": ""}, "f")


def test_lists_have_ends() -> None:
    checks.at_most(2, [1, 2], "f")
    with pytest.raises(InvalidInput, match=r"^f: 3 are more than 2"):
        checks.at_most(2, [1, 2, 3], "f")


@pytest.mark.parametrize("value", [-1, 2**31, 2**40])
def test_users_and_groups(value: int) -> None:
    assert [checks.user_or_group(number, "f") for number in (0, 2**31 - 1)] == [0, 2**31 - 1]
    with pytest.raises(InvalidInput, match=rf"^f: {value} is not within"):
        checks.user_or_group(value, "f")
