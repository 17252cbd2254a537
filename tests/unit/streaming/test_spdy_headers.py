from __future__ import annotations

import contextlib
import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.streaming.failures import ProtocolError
from isulad_py.streaming.spdy_headers import (
    BLOCK_LIMIT_BYTES,
    DICTIONARY,
    HeaderCompressor,
    HeaderInflater,
    parse_block,
)
from tests.spdy_peer import Peer

NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
VALUES = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def test_the_dictionary_is_that_of_the_protocol() -> None:
    """The digest of the constant as other implementations carry it."""
    assert len(DICTIONARY) == 1423
    digest = hashlib.sha256(DICTIONARY).hexdigest()
    assert digest == "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=6))
def test_blocks_come_back(blocks: list[dict[str, str]]) -> None:
    compressor, inflater = HeaderCompressor(), HeaderInflater()
    for headers in blocks:
        assert inflater.headers(compressor.block(headers)) == headers


def test_names_are_sent_in_lower_case() -> None:
    assert HeaderInflater().headers(HeaderCompressor().block({"StreamType": "Error"})) == {"streamtype": "Error"}


def test_another_compressor_is_understood() -> None:
    peer, inflater = Peer(), HeaderInflater()
    for headers in ({"streamtype": "stdin"}, {"streamtype": "stdout", "port": "80"}, {}):
        assert inflater.headers(peer.compress(peer.plain_block(headers))) == headers


def test_what_inflates_to_too_much_is_refused() -> None:
    bomb = Peer().compress(bytes(5_000_000))
    assert len(bomb) < 10_000
    with pytest.raises(ProtocolError, match="larger than"):
        HeaderInflater().headers(bomb)


def test_the_limit_itself_is_allowed() -> None:
    peer = Peer()
    plain = peer.plain_block({"a": "x" * (BLOCK_LIMIT_BYTES - 13)})
    assert len(plain) == BLOCK_LIMIT_BYTES
    assert len(HeaderInflater().headers(peer.compress(plain))["a"]) == BLOCK_LIMIT_BYTES - 13


def test_without_the_dictionary_nothing_is_understood() -> None:
    with pytest.raises(ProtocolError, match="inflated"):
        HeaderInflater().headers(zlib.compress(Peer().plain_block({"a": "b"}))[:-1] + b"\xff\xff\xff\xff\xff\xff")


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\1",
        b"\xff\xff\xff\xff",
        b"\0\0\0\1\0\0\0\1a\0\0\0\5b",
        b"\0\0\0\0more",
        b"\0\0\0\1\0\0\0\0\0\0\0\0",
        b"\0\0\0\1\0\0\0\1A\0\0\0\0",
        b"\0\0\0\2" + 2 * b"\0\0\0\1a\0\0\0\0",
    ],
)
def test_malformed_blocks(plain: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_block(plain)


@given(st.binary(max_size=300))
def test_any_bytes_are_headers_or_a_protocol_error(data: bytes) -> None:
    for read in (HeaderInflater().headers, parse_block):
        with contextlib.suppress(ProtocolError):
            read(data)
