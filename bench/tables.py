"""What the tables of a report are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.clock import Samples


@dataclass(frozen=True)
class Target:
    what: str
    found: str
    met: bool | None
    """None where it was not measured."""

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "found": self.found, "met": self.met}


def ratio(value: float | None, floor: float | None) -> float | None:
    return value / floor if value is not None and floor else None


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *(list(row) for row in rows)]
    if len(lines) == 1:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    return "\n".join([title, *(f"  {line.rstrip()}" for line in text)])


def ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def pair(samples: Samples | None, step: str) -> str:
    if samples is None or samples.median(step) is None:
        return "-"
    return f"{ms(samples.median(step))} ({ms(samples.p90(step))})"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"
