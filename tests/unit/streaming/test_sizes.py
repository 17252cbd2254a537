from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.streaming.failures import ProtocolError
from isulad_py.streaming.sizes import SizeReader


def read(*pieces: bytes) -> list[tuple[int, int]]:
    reader = SizeReader()
    for piece in pieces:
        reader.feed(piece)
    return list(reader.sizes)


def test_objects_one_after_the_other() -> None:
    assert read(b'{"Width":80,"Height":24}\n{"Width":100,"Height":30}\n') == [(80, 24), (100, 30)]
    assert read(b'{"width":80,"HEIGHT":24,"Other":"x"}') == [(80, 24)]


@given(st.lists(st.integers(1, 48), max_size=10))
def test_cut_anywhere(cuts: list[int]) -> None:
    whole = b'{"Width":80,"Height":24}{"Width":100,"Height":30}'
    edges = [0, *sorted(cuts), len(whole)]
    assert read(*(whole[a:b] for a, b in pairwise(edges))) == [(80, 24), (100, 30)]


def test_no_size_is_passed_over() -> None:
    assert read(b'{"Width":0,"Height":0}{"Width":80,"Height":0}') == []


def test_only_the_last_of_several_matters() -> None:
    reader = SizeReader()
    assert reader.take_last() is None
    reader.feed(b'{"Width":1,"Height":2}{"Width":3,"Height":4}')
    assert reader.take_last() == (3, 4)
    assert reader.take_last() is None


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"80x24}",
        b'{"Width":"80","Height":24}',
        b'{"Width":-1,"Height":24}',
        b'{"Width":65536,"Height":24}',
        b'{"Width":1.5,"Height":24}',
        b"[1,2]}",
        b"x" * 2000,
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="resize"):
        read(data)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_sizes_or_a_protocol_error(pieces: list[bytes]) -> None:
    with contextlib.suppress(ProtocolError):
        read(*pieces)
