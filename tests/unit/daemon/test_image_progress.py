from __future__ import annotations

import io

import pytest

from isulad_py.daemon.image_progress import Bars, Lines, display
from isulad_py.engine.progress import PullState
from isulad_py.ports.images import PullProgress


def layer(name: str, done: int, total: int) -> PullProgress:
    return PullProgress(step="downloading", digest="sha256:" + name * 64, done_bytes=done, total_bytes=total)


RESOLVING = PullState(step="resolving")
HALF = PullState(step="downloading", layers=(layer("a", 512, 1024), layer("b", 0, 3 << 20)))
ONE = PullState(step="downloading", layers=(layer("a", 1024, 1024), layer("b", 1 << 20, 3 << 20)))
DONE = PullState(step="done", layers=(layer("a", 1024, 1024), layer("b", 3 << 20, 3 << 20)))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_has_a_line_for_each_news() -> None:
    err = io.StringIO()
    show = display(err)
    assert isinstance(show, Lines)
    for state in (RESOLVING, HALF, HALF, ONE, ONE, DONE):
        show(state)
    assert err.getvalue().splitlines() == [
        "resolving",
        "downloading",
        f"{'a' * 12}: 1.0 KiB",
        "done",
        f"{'b' * 12}: 3.0 MiB",
    ]


def test_a_terminal_is_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "4")
    err = Terminal()
    show = display(err)
    assert isinstance(show, Bars)
    show(RESOLVING)
    assert err.getvalue() == "\x1b[Jresolving\n"
    err.truncate(0)
    err.seek(0)
    show(HALF)
    lines = err.getvalue().splitlines()
    assert lines[0] == "\x1b[1A\x1b[Jdownloading 512 B of 3.0 MiB"
    assert lines[1:] == [f"{'a' * 12} [{'=' * 15}{' ' * 15}] 512 B/1.0 KiB"[:59]], "no more lines than the terminal has"
    err.truncate(0)
    err.seek(0)
    show(DONE)
    assert err.getvalue() == "\x1b[2A\x1b[Jdone 3.0 MiB of 3.0 MiB\n"
