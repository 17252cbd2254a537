from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.stand.ending import SIGNALS, ended_by_signals, uninterrupted


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        with ended_by_signals():
            yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_a_signal_ends_the_run_and_more_do_not_disturb() -> None:
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)


def test_a_signal_waits_for_what_belongs_together() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("made")
            done.append("noted")
        done.append("more")
    assert done == ["made", "noted"]


def test_the_second_signal_does_not_wait() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        done.append("noted")
    assert done == []


def test_without_a_signal_nothing_happens() -> None:
    with uninterrupted(), uninterrupted():
        pass
