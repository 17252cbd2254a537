from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from bench.clock import Samples
from bench.engine import Engine
from bench.memory import Memory
from bench.phases import FLOOR, Results
from bench.pulls import EXTRA
from bench.report import MIB, as_json, as_text, floor_of, targets
from bench.stream_report import RAW

ENGINE = cast("Engine", SimpleNamespace(name="x", errors=[]))


def samples(**steps: float) -> Samples:
    found = Samples()
    for name, value in steps.items():
        found.add(name.replace("_", " "), value)
    return found


def full() -> Results:
    results = Results()
    floor = samples(namespaces=1, pod_up=50, pod_down=80)
    for step, value in (
        ("CNI ADD", 25),
        ("overlay mount", 1),
        ("runc create", 20),
        ("runc start", 4),
        ("runc exec", 20),
    ):
        floor.add(step, value)
    engine = samples(RunPodSandbox=30, CreateContainer=30, StartContainer=5, pod_up=65, pod_down=90)
    engine.add("ExecSync(true)", 24)
    results.serial = {FLOOR: floor, "x": engine}
    results.parallel = {FLOOR: samples(pod_up=100), "x": samples(pod_up=150)}
    results.walls = {FLOOR: {"all up, wall": 500}, "x": {"all up, wall": 900}}
    results.lists = {"x": {1: samples(Version=1, ListContainers=1), 100: samples(Version=1, ListContainers=2)}}
    results.memory = {"x": {"0 pods": Memory(50 * MIB, 0, 0), "50 pods": Memory(70 * MIB, 20 * MIB, 50)}}
    results.pulls = {FLOOR: samples(pull=400, CPU=600), "x": samples(pull=500, CPU=700)}
    results.pulls["x"].add(EXTRA, 30)
    results.pull_lag = {"x": {"looks": 20.0, "over_20_ms": 0.0}}
    results.lag = {"x": {"looks": 100.0, "over_50_ms": 0.0}}
    results.rates = {FLOOR: Samples(), "x": Samples()}
    for step, raw in RAW.items():
        results.rates[FLOOR].add(raw, 900)
        results.rates["x"].add(step, 450)
    results.first_bytes = {FLOOR: Samples(), "x": Samples()}
    results.first_bytes[FLOOR].add("first byte", 20)
    results.first_bytes["x"].add("first byte, SPDY", 30)
    results.first_bytes["x"].add("first byte, WebSocket", 25)
    return results


def test_a_calls_floor_is_the_sum_of_its_parts() -> None:
    assert floor_of("RunPodSandbox", full().serial[FLOOR]) == 26
    assert floor_of("CreateContainer", full().serial[FLOOR]) == 21


def test_a_floor_with_a_part_missing_is_unknown() -> None:
    assert floor_of("RunPodSandbox", samples(namespaces=1)) is None
    assert floor_of("RemovePodSandbox", full().serial[FLOOR]) is None


def test_all_targets_met() -> None:
    assert [target.met for target in targets(full(), ENGINE)] == [True] * 12


def test_each_target_is_missed_by_its_own_figure() -> None:
    results = full()
    results.serial["x"].by_step["pod up"] = [71]
    results.serial["x"].by_step["ExecSync(true)"] = [27]
    results.lists["x"][100].by_step["ListContainers"] = [3.1]
    results.memory["x"] = {"0 pods": Memory(61 * MIB, 0, 0), "50 pods": Memory(80 * MIB, 0, 0)}
    results.lag["x"]["over_50_ms"] = 1.0
    results.pulls["x"].by_step["pull"] = [561]
    results.pulls["x"].by_step[EXTRA] = [10, 41]
    results.pull_lag["x"]["over_20_ms"] = 1.0
    results.rates["x"].by_step["exec in, WebSocket"] = [299]
    results.first_bytes["x"].by_step["first byte, SPDY"] = [30.1]
    failing = cast("Engine", SimpleNamespace(name="x", errors=["pod: refused"]))
    assert [target.met for target in targets(results, failing)] == [False] * 12


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert {target.met for target in targets(Results(), ENGINE)} == {None, True}


def test_the_table_names_calls_and_ratios() -> None:
    text = as_text(full(), [ENGINE])
    assert "1.30x" in text
    assert "Lists with 1 / 100 containers" in text
    assert "MISSED" not in text


def test_nothing_measured_prints_no_empty_tables() -> None:
    assert "median" not in as_text(Results(), [ENGINE])


def test_streams_are_judged_by_the_worst_once_all_were_measured() -> None:
    results = full()
    results.pulls["x"].by_step["pull"] = [561]
    results.pulls["x"].by_step[EXTRA] = [10, 41]
    results.pull_lag["x"]["over_20_ms"] = 1.0
    results.rates["x"].by_step["exec in, WebSocket"] = [299]
    by_name = {target.what: target for target in targets(results, ENGINE)}
    assert by_name["streams at least 1/3 of their raw rates"].found == "0.33 x (exec in, WebSocket)"
    assert by_name["first byte within 10 ms of runc exec"].found == "+10.0 ms (SPDY)"
    del results.rates["x"].by_step["port-forward in"]
    by_name = {target.what: target for target in targets(results, ENGINE)}
    assert by_name["streams at least 1/3 of their raw rates"].met is None


def test_json_round_trips() -> None:
    document: dict[str, Any] = json.loads(json.dumps(as_json(full(), [ENGINE], {"time": "now"})))
    assert document["ratios"]["x"]["pod up"] == 1.3
    assert document["megabytes_per_second"]["x"]["exec in, SPDY"] == [450]
    assert document["milliseconds"]["first_bytes"]["x"]["first byte, SPDY"] == [30]
    assert document["memory_bytes"]["x"]["50 pods"]["total"] == 90 * MIB
