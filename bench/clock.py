"""Stopwatch and samples, all in milliseconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Samples:
    """Times by step; steps keep the order in which they came first."""

    def __init__(self) -> None:
        self.by_step: dict[str, list[float]] = {}

    def add(self, step: str, milliseconds: float) -> None:
        self.by_step.setdefault(step, []).append(milliseconds)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """A step that fails leaves no sample."""
        began = time.perf_counter()
        yield
        self.add(step, (time.perf_counter() - began) * 1000)

    def extend(self, other: Samples) -> None:
        for step, values in other.by_step.items():
            self.by_step.setdefault(step, []).extend(values)

    def median(self, step: str) -> float | None:
        values = self.by_step.get(step)
        return statistics.median(values) if values else None

    def p90(self, step: str) -> float | None:
        return quantile(self.by_step.get(step, []), 0.9)


def quantile(values: list[float], share: float) -> float | None:
    """The smallest value that is not below the share of all."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


class Limit:
    """The end of the time that a run may take."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left_seconds(self) -> float:
        return self._end - time.monotonic()

    def allows(self, seconds: float) -> bool:
        return self.left_seconds > seconds


def machine_busy_ms() -> float:
    """CPU time that the whole machine has spent, everything that ran beside us included (proc_stat(5))."""
    with open("/proc/stat", encoding="ascii") as stat:  # noqa: PTH123 - one line of a file that cannot be read at once
        fields = stat.readline().split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) * 10.0
