from __future__ import annotations

import signal

import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import InvalidInput
from isulad_py.model.signals import cri_number, kernel_number, parse_signal, stop_signal_number


def _named(member: cri.Signal) -> int:
    name = (member.name or "").replace("RTMINPLUS", "RTMIN+").replace("RTMAXMINUS", "RTMAX-")
    return parse_signal(name)


@pytest.mark.parametrize("member", [m for m in cri.Signal if m != 0], ids=str)
def test_the_table_follows_cris_enumeration(member: cri.Signal) -> None:
    assert kernel_number(int(member)) == _named(member)


def test_the_table_follows_this_kernel() -> None:
    for entry in signal.Signals:
        assert parse_signal(entry.name) == entry.value


def test_every_kernel_number_that_cri_knows_comes_back() -> None:
    for number in [*range(1, 32), *range(34, 65)]:
        assert kernel_number(cri_number(number)) == number


def test_signals_without_a_cri_number() -> None:
    assert [cri_number(number) for number in (0, 32, 33, 65, -1)] == [0] * 5
    assert kernel_number(0) == 0


@pytest.mark.parametrize("number", [-1, 66, 1000])
def test_unknown_cri_numbers_are_refused(number: int) -> None:
    with pytest.raises(InvalidInput, match="stop_signal"):
        kernel_number(number)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SIGTERM", 15),
        ("term", 15),
        (" SIGINT ", 2),
        ("15", 15),
        ("64", 64),
        ("SIGRTMIN", 34),
        ("SIGRTMIN+3", 37),
        ("RTMAX-1", 63),
        ("RTMIN+30", 64),
        ("SIGCLD", 17),
    ],
)
def test_signals_as_images_write_them(text: str, number: int) -> None:
    assert parse_signal(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "65",
        "-1",
        "SIG",
        "SIGFOO",
        "RTMIN-1",
        "RTMAX+1",
        "RTMIN+31",
        "RTMIN+",
        "RTMIN+x",
        "1e1",
        "²",
        "9" * 5000,
    ],
)
def test_what_is_no_signal_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a signal"):
        parse_signal(text)


def test_the_request_wins_over_the_image_over_sigterm() -> None:
    assert stop_signal_number(int(cri.Signal.SIGINT), "SIGQUIT") == signal.SIGINT
    assert stop_signal_number(0, "SIGQUIT") == signal.SIGQUIT
    assert stop_signal_number(0, "") == signal.SIGTERM
    assert stop_signal_number(0, "nonsense") == signal.SIGTERM
