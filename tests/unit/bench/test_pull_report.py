from __future__ import annotations

from bench.clock import Samples
from bench.phases import FLOOR, Results
from bench.pull_report import pull_rows, pull_targets
from bench.pulls import CPU, EXTRA, PULL, TOOLS


def samples(pull: float, cpu: float, extra: float | None = None) -> Samples:
    found = Samples()
    found.add(PULL, pull)
    found.add(CPU, cpu)
    if extra is not None:
        found.add(EXTRA, extra)
    return found


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert [target.met for target in pull_targets(Results(), "x")] == [None, None, None]


def test_rows_show_each_beside_the_floor() -> None:
    results = Results(pulls={FLOOR: samples(400, 500), TOOLS: samples(2000, 2500, 60), "x": samples(500, 750, 20)})
    lines = pull_rows(results, ["x", "absent"]).splitlines()
    assert [line.split()[0] for line in lines[2:]] == [FLOOR, "skopeo,", "x"]
    assert "1.25x" in lines[4]
    assert "1.50x" in lines[4]


def test_no_pulls_no_table() -> None:
    assert pull_rows(Results(), ["x"]) == ""
