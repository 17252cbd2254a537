from __future__ import annotations

from typing import Any

import pytest
import structlog

from isulad_py.engine.progress import LOG_SECONDS, TELL_SECONDS, Latest, Meter, PullState
from isulad_py.ports.images import PullProgress
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def meter(clock: FakeClock) -> Meter:
    return Meter(image="app:1", clock=clock)


def downloading(digest: str, done: int, total: int = 100) -> PullProgress:
    return PullProgress(step="downloading", digest=digest, done_bytes=done, total_bytes=total)


def test_watchers_hear_of_steps_at_once_and_of_bytes_now_and_then(meter: Meter, clock: FakeClock) -> None:
    heard: list[PullState] = []
    with meter.heard_by(heard.append):
        meter(PullProgress(step="resolving"))
        meter(downloading("a", 0))
        for done in range(1, 50):
            meter(downloading("a", done))
        assert [state.step for state in heard] == ["resolving", "downloading"]
        clock.advance(TELL_SECONDS)
        meter(downloading("b", 7))
        assert [layer.done_bytes for layer in heard[-1].layers] == [49, 7]
        meter(PullProgress(step="done"))
    meter(PullProgress(step="after"))
    assert [state.step for state in heard] == ["resolving", "downloading", "downloading", "done"]
    assert meter.total_bytes == 56


def test_who_comes_late_is_told_what_there_is(meter: Meter) -> None:
    heard: list[PullState] = []
    with meter.heard_by(heard.append):
        assert heard == []
    meter(downloading("a", 3))
    with meter.heard_by(heard.append), meter.heard_by(None):
        assert [layer.done_bytes for layer in heard[0].layers] == [3]


def test_a_long_pull_is_in_the_log(meter: Meter, clock: FakeClock) -> None:
    with structlog.testing.capture_logs() as lines:
        meter(downloading("a", 10))
        clock.advance(LOG_SECONDS)
        meter(downloading("a", 20))
        meter(downloading("a", 30))
    [line] = lines
    assert (line["image"], line["step"], line["bytes"], line["of"]) == ("app:1", "downloading", 20, 100)


async def test_a_slow_reader_has_the_latest_and_the_last() -> None:
    latest: Latest[Any] = Latest()
    values = latest.values()
    latest.put(1)
    latest.put(2)
    assert await anext(values) == 2
    latest.put(3)
    latest.end()
    assert [value async for value in values] == [3]
    empty: Latest[Any] = Latest()
    empty.end()
    assert [value async for value in empty.values()] == []
