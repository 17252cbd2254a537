"""A narrow page of three columns: what, what came of it, how long it took."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

LEFT, MIDDLE, RIGHT = 10, 54, 9
WIDTH = LEFT + MIDDLE + RIGHT + 4


class Step:
    """What a step has to tell; filled in while it runs."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, text: str) -> None:
        self.lines.append(text)


def put(line: str) -> None:
    """Print at once; where nobody reads any more, go on in silence, because cleaning up must not end here."""
    try:
        print(line.rstrip(), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def heading(text: str) -> None:
    put(f"\n{text}\n{'-' * WIDTH}")


def note(text: str, label: str = "") -> None:
    """A line, or several, without a time."""
    for line in fold(text):
        put(f"{label:<{LEFT}}  {line}")
        label = ""


@contextmanager
def step(label: str) -> Iterator[Step]:
    """Runs a step and shows it with its time; a step that fails shows that, and the failure goes on."""
    shown = Step()
    began = time.perf_counter()
    try:
        yield shown
    except BaseException as error:
        ending = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        put(f"{label:<{LEFT}}  {ending:<{MIDDLE}}  {spent(began):>{RIGHT}}")
        raise
    time_spent = spent(began)
    lines = [part for line in shown.lines or ["done"] for part in fold(line)]
    for number, line in enumerate(lines):
        left, right = (label, time_spent) if number == 0 else ("", "")
        put(f"{left:<{LEFT}}  {line:<{MIDDLE}}  {right:>{RIGHT}}")


def spent(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:,.0f} ms"


def fold(text: str) -> list[str]:
    return textwrap.wrap(text, MIDDLE, subsequent_indent="  ", break_on_hyphens=False) or [""]


def size(count: int) -> str:
    """Bytes, for people."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
