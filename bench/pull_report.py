"""What a run found of pulls: each beside the floor, and whether ours is what it should be."""

from __future__ import annotations

from collections.abc import Sequence

from bench.clock import Samples
from bench.phases import FLOOR, PULL_LAG_MS, Results
from bench.pulls import CPU, EXTRA, PULL, TOOLS
from bench.tables import Target, ms, pair, ratio, table, times

PULL_RATIO, EXTRA_MIB = 1.4, 40


def pull_targets(results: Results, name: str) -> list[Target]:
    found, floor = results.pulls.get(name, Samples()), results.pulls.get(FLOOR, Samples())
    share = ratio(found.median(PULL), floor.median(PULL))
    extra = max(found.by_step.get(EXTRA, []), default=None)
    lag = results.pull_lag.get(name)
    over = f"over_{PULL_LAG_MS}_ms"
    return [
        Target(
            f"pull at most {PULL_RATIO} x its floor",
            "not measured" if share is None else f"{share:.2f} x",
            None if share is None else share <= PULL_RATIO,
        ),
        Target(
            f"pull takes less than {EXTRA_MIB} MiB more",
            "not measured" if extra is None else f"{extra:.1f} MiB at worst",
            None if extra is None else extra < EXTRA_MIB,
        ),
        Target(
            f"loop never over {PULL_LAG_MS} ms late in a pull",
            f"{lag[over]:.0f} of {lag['looks']:.0f} looks" if lag else "not measured",
            lag[over] == 0 if lag else None,
        ),
    ]


def pull_rows(results: Results, names: Sequence[str]) -> str:
    floor = results.pulls.get(FLOOR)
    if floor is None or not floor.by_step:
        return ""
    rows = []
    for name in (FLOOR, TOOLS, *names):
        samples = results.pulls.get(name)
        if samples is None or not samples.by_step:
            continue
        share = ratio(samples.median(PULL), floor.median(PULL))
        work = ratio(samples.median(CPU), floor.median(CPU))
        rows.append([
            name, pair(samples, PULL), times(share), ms(samples.median(CPU)), times(work),
            ms(samples.median(EXTRA)), pair(samples, "RemoveImage"),
        ])  # fmt: skip
    head = ["", "ms", "/floor", "CPU ms", "/floor", "extra MiB", "remove, ms"]
    return table(
        "Pull of an image of five layers; floor: fetch, verify, tar, all at once, syncfs; median (p90)", head, rows
    )
