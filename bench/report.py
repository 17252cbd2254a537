"""What a run found: the table that people read, the JSON that programs read, and the targets with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.clock import Samples
from bench.engine import Engine
from bench.phases import FLOOR, Results
from bench.pull_report import pull_rows, pull_targets
from bench.pulls import EXTRA
from bench.stream_report import stream_rows, stream_targets
from bench.tables import Target, ms, pair, ratio, table, times

MIB = 1024 * 1024
CALL_FLOORS: dict[str, tuple[str, ...]] = {
    "RunPodSandbox": ("namespaces", "CNI ADD"),
    "CreateContainer": ("overlay mount", "runc create"),
    "StartContainer": ("runc start",),
    "pod up": ("pod up",),
    "ExecSync(true)": ("runc exec",),
    "PodSandboxStatus": (),
    "ContainerStatus": (),
    "StopContainer(0)": ("runc kill, wait",),
    "RemoveContainer": ("runc delete", "overlay unmount"),
    "StopPodSandbox": ("CNI DEL", "namespaces drop"),
    "RemovePodSandbox": (),
    "pod down": ("pod down",),
}
"""Which parts of the floor a call cannot do without."""

POD_UP_RATIO, EXEC_RATIO, LIST_RATIO = 1.4, 1.3, 3.0
IDLE_PSS, BUSY_PSS = 60 * MIB, 80 * MIB


def floor_of(call: str, floor: Samples | None) -> float | None:
    """The sum of the medians of the call's parts."""
    parts = [floor.median(step) for step in CALL_FLOORS.get(call, ())] if floor else []
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def list_ratio(results: Results, name: str) -> tuple[int, float | None]:
    """ListContainers over Version, with as many containers as there were."""
    lists = results.lists.get(name, {})
    if not lists:
        return 0, None
    most = max(lists)
    return most, ratio(lists[most].median("ListContainers"), lists[most].median("Version"))


def targets(results: Results, engine: Engine) -> list[Target]:
    floor, serial = results.serial.get(FLOOR), results.serial.get(engine.name)
    up = ratio(serial.median("pod up") if serial else None, floor_of("pod up", floor))
    execute = ratio(serial.median("ExecSync(true)") if serial else None, floor_of("ExecSync(true)", floor))
    containers, listed = list_ratio(results, engine.name)
    memory = results.memory.get(engine.name, {})
    idle = memory.get("0 pods")
    most = [name for name in memory if name not in {"0 pods", "after"}][-1:]
    busy = memory[most[0]] if most else None
    lag = results.lag.get(engine.name)
    return [
        _at_most(f"pod up at most {POD_UP_RATIO} x the sum of its floors", up, POD_UP_RATIO),
        _at_most(f"ExecSync at most {EXEC_RATIO} x runc exec", execute, EXEC_RATIO),
        _at_most(f"ListContainers ({containers}) at most {LIST_RATIO:g} x Version", listed, LIST_RATIO),
        Target("no errors", f"{len(engine.errors)} errors", not engine.errors),
        _below("daemon PSS idle under 60 MiB", idle.daemon if idle else None, IDLE_PSS),
        _below(f"daemon PSS with {most[0] if most else 'pods'} under 80 MiB", busy.daemon if busy else None, BUSY_PSS),
        Target(
            "loop never over 50 ms late",
            f"{lag['over_50_ms']:.0f} of {lag['looks']:.0f} looks" if lag else "not measured",
            lag["over_50_ms"] == 0 if lag else None,
        ),
        *pull_targets(results, engine.name),
        *stream_targets(results, engine.name),
    ]


def _at_most(what: str, value: float | None, limit: float) -> Target:
    return Target(
        what, "not measured" if value is None else f"{value:.2f} x", None if value is None else value <= limit
    )


def _below(what: str, value: int | None, limit: int) -> Target:
    found = "not measured" if value is None else f"{value / MIB:.1f} MiB"
    return Target(what, found, None if value is None else value < limit)


def as_json(results: Results, engines: Sequence[Engine], about: dict[str, Any]) -> dict[str, Any]:
    return {
        "about": about,
        "milliseconds": {
            "serial": {name: samples.by_step for name, samples in results.serial.items()},
            "parallel": {name: samples.by_step for name, samples in results.parallel.items()},
            "walls": results.walls,
            "lists": {
                name: {str(count): samples.by_step for count, samples in by_count.items()}
                for name, by_count in results.lists.items()
            },
            "pulls": {name: _without(samples.by_step, EXTRA) for name, samples in results.pulls.items()},
            "first_bytes": {name: samples.by_step for name, samples in results.first_bytes.items()},
        },
        "megabytes_per_second": {name: rates.by_step for name, rates in results.rates.items()},
        "memory_bytes": {
            name: {when: found.as_json() for when, found in by_time.items()} for name, by_time in results.memory.items()
        },
        "pull_extra_mib": {name: samples.by_step.get(EXTRA, []) for name, samples in results.pulls.items()},
        "loop_lag": results.lag,
        "loop_lag_in_pulls": results.pull_lag,
        "ratios": {
            engine.name: {
                call: ratio(results.serial[engine.name].median(call), floor_of(call, results.serial.get(FLOOR)))
                for call in CALL_FLOORS
                if engine.name in results.serial
            }
            for engine in engines
        },
        "targets": {engine.name: [target.as_json() for target in targets(results, engine)] for engine in engines},
        "errors": {engine.name: engine.errors for engine in engines},
        "skipped": results.skipped,
    }


def _without(by_step: dict[str, list[float]], step: str) -> dict[str, list[float]]:
    return {name: values for name, values in by_step.items() if name != step}


def as_text(results: Results, engines: Sequence[Engine]) -> str:
    blocks = [
        _floors(results),
        _serial(results, engines),
        _parallel(results, engines),
        _lists(results, engines),
        pull_rows(results, [engine.name for engine in engines]),
        stream_rows(results, [engine.name for engine in engines]),
        _memory(results, engines),
        *(_verdicts(results, engine) for engine in engines),
    ]
    if results.skipped:
        blocks.append("Left out: " + "; ".join(results.skipped))
    return "\n\n".join(block for block in blocks if block)


def _floors(results: Results) -> str:
    floor = results.serial.get(FLOOR)
    rows = [(step, pair(floor, step)) for step in floor.by_step] if floor else []
    return table("Floors: the parts called directly; median (p90), ms", ["", FLOOR], rows)


def _with_ratios(engines: Sequence[Engine]) -> list[str]:
    return [cell for engine in engines for cell in (engine.name, "/floor")]


def _serial(results: Results, engines: Sequence[Engine]) -> str:
    floor = results.serial.get(FLOOR)
    rows = []
    for call in CALL_FLOORS:
        row = [call, ms(floor_of(call, floor))]
        for engine in engines:
            samples = results.serial.get(engine.name)
            value = samples.median(call) if samples else None
            row += [pair(samples, call), times(ratio(value, floor_of(call, floor)))]
        rows.append(row)
    count = max((len(samples.by_step.get("pod up", [])) for samples in results.serial.values()), default=0)
    title = f"{count} pods, one after the other, floors and engines in turns; median (p90), ms"
    return table(title, ["", FLOOR, *_with_ratios(engines)], rows) if count else ""


def _parallel(results: Results, engines: Sequence[Engine]) -> str:
    floor = results.parallel.get(FLOOR)
    rows = []
    for call in CALL_FLOORS:
        if any(call in samples.by_step for samples in results.parallel.values()):
            value = floor_of(call, floor)
            row = [call, ms(value)]
            for engine in engines:
                samples = results.parallel.get(engine.name)
                row += [pair(samples, call), times(ratio(samples.median(call) if samples else None, value))]
            rows.append(row)
    for step in ("all up, wall", "all down, wall", "one up, machine CPU", "one down, machine CPU"):
        value = results.walls.get(FLOOR, {}).get(step)
        row = [step, ms(value)]
        for engine in engines:
            found = results.walls.get(engine.name, {}).get(step)
            row += [ms(found), times(ratio(found, value))]
        rows.append(row)
    count = max((len(samples.by_step.get("pod up", [])) for samples in results.parallel.values()), default=0)
    return table(f"{count} pods at once; median (p90), ms", ["", FLOOR, *_with_ratios(engines)], rows) if count else ""


def _lists(results: Results, engines: Sequence[Engine]) -> str:
    rows = []
    for call in ("Version", "ListContainers", "ListPodSandbox", "ListContainerStats", "ListPodSandboxStats"):
        row = [call]
        for engine in engines:
            by_count = results.lists.get(engine.name, {})
            row.append(" / ".join(ms(by_count[count].median(call)) for count in sorted(by_count)) or "-")
        rows.append(row)
    counts = sorted({count for by_count in results.lists.values() for count in by_count})
    title = f"Lists with {' / '.join(map(str, counts))} containers; median, ms"
    return table(title, ["", *(engine.name for engine in engines)], rows) if counts else ""


def _memory(results: Results, engines: Sequence[Engine]) -> str:
    rows = []
    for engine in engines:
        for when, found in results.memory.get(engine.name, {}).items():
            rows.append([
                f"{engine.name}, {when}",
                f"{found.daemon / MIB:.1f}",
                f"{found.monitors / MIB:.1f} ({found.monitor_count})",
                f"{found.total / MIB:.1f}",
            ])  # fmt: skip
    return table("Memory, PSS in MiB", ["", "daemon", "monitors", "sum"], rows)


def _verdicts(results: Results, engine: Engine) -> str:
    words = {True: "met", False: "MISSED", None: "?"}
    rows = [[target.what, target.found, words[target.met]] for target in targets(results, engine)]
    text = table(f"Targets, {engine.name}", ["", "found", ""], rows)
    return "\n".join([text, *(f"  error: {error}" for error in engine.errors[:20])])
