"""How a run on a stand ends: by itself or by a signal, and then with a look at what is left."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tests.stand.cgroups import cgroups_named
from tests.stand.leftovers import clear, find_leftovers
from tests.stand.mark import Mark

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Hold:
    """Whether an ending has to wait, and whether one waits."""

    depth = 0
    waiting = ""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP raises KeyboardInterrupt; more of them do not cut the cleaning up short.

    After the block they are ignored: what is left to do is to look back.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if _Hold.depth and not _Hold.waiting:
            _Hold.waiting = name
            return
        _Hold.waiting = ""
        _ignore_signals()
        raise KeyboardInterrupt(name)

    for each in SIGNALS:
        signal.signal(each, end)
    try:
        yield
    finally:
        _ignore_signals()


def _ignore_signals() -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A call that makes something, and the noting of how to unmake it, belong together: a signal waits until both are
    done. A second signal does not wait."""
    _Hold.depth += 1
    try:
        yield
    finally:
        _Hold.depth -= 1
        if _Hold.waiting and not _Hold.depth:
            name, _Hold.waiting = _Hold.waiting, ""
            _ignore_signals()
            raise KeyboardInterrupt(name)


def leave(mark: Mark, say: Callable[[str], None]) -> bool:
    """Say what an engine left behind, take it and the folder away; whether there was nothing.

    To be called when everything was ended in order. The pods' parent cgroups are ours to remove, as a kubelet does it:
    what is still inside them was the engine's to remove.
    """
    left = [each for each in find_leftovers(mark, folder_too=False) if not each.startswith("cgroup ")]
    left += [
        f"cgroup {path}" for folder in cgroups_named(mark.word) for path in folder.glob("pod-*/*/") if path.is_dir()
    ]
    for each in left:
        say(f"left behind: {each}")
    clear(mark)
    stuck = find_leftovers(mark)
    for each in stuck:
        say(f"cannot be removed: {each}")
    return not left and not stuck
