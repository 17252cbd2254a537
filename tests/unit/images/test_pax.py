"""Extended headers by themselves; in archives: test_tar.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.images import pax
from isulad_py.model.errors import DataLoss


def record(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length += 1
    return str(length).encode() + body


@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z.]{1,20}", fullmatch=True), st.binary(max_size=200)), max_size=5))
def test_records_come_back(pairs: list[tuple[str, bytes]]) -> None:
    data = b"".join(record(key.encode(), value) for key, value in pairs)
    assert pax.parse_records(data) == dict(pairs)
    assert pax.parse_records(data + bytes(100)) == dict(pairs)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        pax.parse_records(data)
    except DataLoss:
        return


def test_the_later_record_wins_and_xattrs_are_told_apart() -> None:
    records = pax.parse_records(record(b"path", b"a") + record(b"path", b"b") + record(b"SCHILY.xattr.user.x", b"=\n"))
    assert records["path"] == b"b"
    assert pax.xattrs_of(records) == {"user.x": b"=\n"}


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=8), st.integers(0, 400))
def test_segments_are_in_order_and_inside(pairs: list[tuple[int, int]], size: int) -> None:
    numbers = [number for pair in pairs for number in pair]
    try:
        segments = pax.segments_of(numbers, size, sum(length for _, length in pairs))
    except DataLoss:
        return
    end = 0
    for offset, length in segments:
        assert end <= offset
        assert length > 0
        end = offset + length
    assert end <= size


@pytest.mark.parametrize("text", [b"", b"-1", b"+1", b"1.0", b"0x1", b"9" * 21, b"9223372036854775808", b"1_0", b" 1"])
def test_what_is_no_number(text: bytes) -> None:
    with pytest.raises(DataLoss):
        pax.parse_number(text, "it")
