"""What a run found of streams: each way beside its raw one."""

from __future__ import annotations

from collections.abc import Sequence

from bench.phases import FLOOR, Results
from bench.tables import Target, ratio, table, times

RATE_SHARE, FIRST_BYTE_MS = 1 / 3, 10.0
RAW: dict[str, str] = {
    "exec out, SPDY": "exec out",
    "exec out, WebSocket": "exec out",
    "exec in, SPDY": "exec in",
    "exec in, WebSocket": "exec in",
    "port-forward out": "connection out",
    "port-forward in": "connection in",
}
"""The raw way of each: a pipe through `runc exec`, a TCP connection to the pod."""
ALONE = ("client alone: out, SPDY", "client alone: out, WebSocket", "client alone: in")
FIRST_BYTE = "first byte"
FIRST_BYTES = ("first byte, SPDY", "first byte, WebSocket")


def share(results: Results, name: str, step: str) -> float | None:
    """Of the raw rate."""
    floor, found = results.rates.get(FLOOR), results.rates.get(name)
    return ratio(found.median(step) if found else None, floor.median(RAW[step]) if floor else None)


def added_ms(results: Results, name: str, step: str) -> float | None:
    """To the time of `runc exec` to its first byte."""
    floor, found = results.first_bytes.get(FLOOR), results.first_bytes.get(name)
    value, least = found.median(step) if found else None, floor.median(FIRST_BYTE) if floor else None
    return value - least if value is not None and least is not None else None


def stream_targets(results: Results, name: str) -> list[Target]:
    """Each by its worst."""
    shares = {step: found for step in RAW if (found := share(results, name, step)) is not None}
    added = {step: found for step in FIRST_BYTES if (found := added_ms(results, name, step)) is not None}
    slowest = min(shares, key=shares.__getitem__, default="")
    latest = max(added, key=added.__getitem__, default="")
    complete = len(shares) == len(RAW), len(added) == len(FIRST_BYTES)
    return [
        Target(
            "streams at least 1/3 of their raw rates",
            f"{shares[slowest]:.2f} x ({slowest})" if slowest else "not measured",
            shares[slowest] >= RATE_SHARE if complete[0] else None,
        ),
        Target(
            f"first byte within {FIRST_BYTE_MS:g} ms of runc exec",
            f"{added[latest]:+.1f} ms ({latest.partition(', ')[2]})" if latest else "not measured",
            added[latest] <= FIRST_BYTE_MS if complete[1] else None,
        ),
    ]


def stream_rows(results: Results, names: Sequence[str]) -> str:
    floor = results.rates.get(FLOOR)
    rows = []
    for step, raw in RAW.items():
        row = [step, _rate(floor.median(raw) if floor else None)]
        for name in names:
            found = results.rates.get(name)
            row += [_rate(found.median(step) if found else None), times(share(results, name, step))]
        rows.append(row)
    if floor:
        rows += [[step, _rate(floor.median(step)), *[""] * 2 * len(names)] for step in ALONE]
    raw_first = results.first_bytes.get(FLOOR)
    for step in FIRST_BYTES:
        row = [f"{step}, ms", _rate(raw_first.median(FIRST_BYTE) if raw_first else None)]
        for name in names:
            first, added = results.first_bytes.get(name), added_ms(results, name, step)
            row += [_rate(first.median(step) if first else None), "" if added is None else f"{added:+.1f}"]
        rows.append(row)
    head = ["", "raw", *(cell for name in names for cell in (name, "/raw"))]
    title = "Streams in turns with a pipe through runc exec and with a TCP connection to the pod; median, MB/s"
    return table(title, head, rows) if floor else ""


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"
