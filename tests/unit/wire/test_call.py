from __future__ import annotations

import pytest
from grpclib.metadata import decode_grpc_message

from isulad_py.model.errors import InvalidInput
from isulad_py.wire.call import MESSAGE_BYTES, timeout_seconds, trailer


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("1H", 3600), ("2M", 120), ("3S", 3), ("4m", 0.004), ("5u", 5e-6), ("6n", 6e-9), ("0S", 0)],
)
def test_timeouts(header: str | None, seconds: float | None) -> None:
    assert timeout_seconds(header) == pytest.approx(seconds)


@pytest.mark.parametrize("header", ["", "1", "S", "1s", "123456789S", "-1S", "1.5S", "1S ", "٣S"])
def test_what_is_no_timeout(header: str) -> None:
    with pytest.raises(InvalidInput, match="grpc-timeout"):
        timeout_seconds(header)


@pytest.mark.parametrize("text", ["", "plain", "a\nb", "100%", "ünï", "𐍈"])
def test_trailers_arrive_as_they_were(text: str) -> None:
    assert decode_grpc_message(trailer(text)) == text


@pytest.mark.parametrize("text", ["x" * 100_000, "ü" * 100_000, "𐍈" * 100_000, "a" * 4000 + "𐍈" * 4000])
def test_long_trailers_are_cut_between_characters(text: str) -> None:
    cut = trailer(text)
    assert MESSAGE_BYTES * 0.9 < len(cut) <= MESSAGE_BYTES
    shown = decode_grpc_message(cut)
    assert shown.endswith("...")
    assert text.startswith(shown.removesuffix("..."))
