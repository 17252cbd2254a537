from __future__ import annotations

from isulad_py.model.ids import ID_LENGTH, new_id, short


def test_ids_are_long_hexadecimal_and_new() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(each) == ID_LENGTH and int(each, 16) >= 0 for each in ids)


def test_people_see_twelve_characters() -> None:
    assert short("0123456789abcdef") == "0123456789ab"
    assert short("sha256:0123456789abcdef") == "0123456789ab"
