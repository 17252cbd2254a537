"""The phases of a run: serial life, memory, many pods at once, lists, pulls. Floors and engines take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.clock import Limit, Samples, machine_busy_ms
from bench.engine import CALL_SECONDS, Engine, EnginePod, PodOptions
from bench.floors import FloorPlace, FloorPod
from bench.memory import Memory, measure
from bench.pulls import TOOLS, PullPlace, has_tools, pull_by_engine, pull_floor, pull_with_tools
from tests.stand.ending import uninterrupted

FLOOR = "floor"
POD_LAG_MS, PULL_LAG_MS = 50, 20
"""A loop that is later than that under pods, or in a pull, blocks."""


@dataclass(frozen=True)
class Amounts:
    """How much of each is done."""

    serial_pods: int = 10
    execs: int = 5
    parallel_pods: int = 50
    concurrency: int = 10
    few_pods: int = 10
    """Where memory is looked at between none and all."""
    listed: int = 100
    list_calls: int = 30
    pulls: int = 5
    stream_rounds: int = 5
    first_bytes: int = 10
    stream_bytes: int = 128 * 1024 * 1024
    """Sent for each rate."""


@dataclass
class Results:
    """What a run found, by engine name; the floors are under FLOOR."""

    serial: dict[str, Samples] = field(default_factory=dict)
    parallel: dict[str, Samples] = field(default_factory=dict)
    walls: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of the parallel phase: milliseconds until all were up or down, CPU of the machine for one pod."""
    lists: dict[str, dict[int, Samples]] = field(default_factory=dict)
    memory: dict[str, dict[str, Memory]] = field(default_factory=dict)
    pulls: dict[str, Samples] = field(default_factory=dict)
    first_bytes: dict[str, Samples] = field(default_factory=dict)
    """Of exec sessions."""
    rates: dict[str, Samples] = field(default_factory=dict)
    """Of streams, in megabytes (10^6) a second."""
    lag: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of the loop, under pods."""
    pull_lag: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    engines: Sequence[Engine]
    options: PodOptions
    place: FloorPlace
    amounts: Amounts
    limit: Limit
    results: Results = field(default_factory=Results)

    def begin(self) -> None:
        """What can be seen only before the first pod."""
        for engine in self.engines:
            self.results.memory[engine.name] = {"0 pods": measure(engine.pid, [])}

    def loop_watched(self, *engines: Engine) -> AbstractContextManager[None]:
        return self._watched(self.results.lag, POD_LAG_MS, engines)

    @contextmanager
    def _watched(self, found: dict[str, dict[str, float]], limit_ms: int, engines: Sequence[Engine]) -> Iterator[None]:
        """Adds up how late the loops were under their own load; what other engines do meanwhile is not their doing."""
        before = {engine.name: engine.loop_lag() for engine in engines}
        yield
        for engine in engines:
            first, last = before[engine.name], engine.loop_lag()
            if first and last:
                over = f"over_{limit_ms}_ms"
                sums = found.setdefault(engine.name, {"looks": 0.0, over: 0.0})
                sums["looks"] += last.looks - first.looks
                sums[over] += last.late(limit_ms / 1000) - first.late(limit_ms / 1000)

    def serial(self) -> None:
        """One pod at a time: floor, engine, engine, floor, …; in each round another one begins."""
        results = self.results.serial
        for name in (FLOOR, *(engine.name for engine in self.engines)):
            results[name] = Samples()
        for turn in range(self.amounts.serial_pods):
            if not self.time_for(f"serial pods from {turn}", 3):
                return
            floor = FloorPod(self.place, f"{self.options.word}s{turn}")
            pods = [EnginePod(engine, self.options, f"s{turn}") for engine in self.engines]
            try:
                lives = [_Life(floor, results[FLOOR])]
                lives += [
                    _EngineLife(pod, results[engine.name], engine)
                    for pod, engine in zip(pods, self.engines, strict=True)
                ]
                shift = turn % len(lives)
                with self.loop_watched(*self.engines):
                    self._one_round(lives[shift:] + lives[:shift])
            except BaseException:
                floor.clear()
                raise

    def _one_round(self, lives: Sequence[_Life]) -> None:
        for life in lives:
            life.up()
        for _ in range(self.amounts.execs):
            for life in lives:
                life.execute()
        for life in lives:
            life.down()

    def memory_of_few(self) -> None:
        """None, then a few pods; this also warms up what comes next."""
        for engine in self.engines:
            found = self.results.memory[engine.name]
            if not self.time_for(f"memory of {engine.name} with a few pods", 10):
                return
            pods = [EnginePod(engine, self.options, f"m{n}") for n in range(self.amounts.few_pods)]
            self._all_at_once(engine, [partial(pod.up, Samples()) for pod in pods])
            found[f"{len(pods)} pods"] = measure(engine.pid, [each for pod in pods for each in pod.ids if each])
            self._all_at_once(engine, [partial(pod.down, Samples()) for pod in pods])

    def parallel(self) -> None:
        """Many pods at once, then lists over their containers; each engine alone, the floors in between."""
        self._parallel_floors()
        for engine in self.engines:
            if self.time_for(f"parallel pods of {engine.name}", 25):
                with self.loop_watched(engine):
                    self._parallel_pods(engine)

    def _parallel_floors(self) -> None:
        if not self.time_for("parallel floors", 25):
            return
        count = self.amounts.parallel_pods
        pods = [FloorPod(self.place, f"{self.options.word}p{n}") for n in range(count)]
        samples = [Samples() for _ in pods]
        walls = self.results.walls.setdefault(FLOOR, {})
        ups = [partial(_whole, noted, "pod up", pod.up) for pod, noted in zip(pods, samples, strict=True)]
        downs = [partial(_whole, noted, "pod down", pod.down) for pod, noted in zip(pods, samples, strict=True)]
        try:
            for what, calls in (("up", ups), ("down", downs)):
                with ThreadPoolExecutor(self.amounts.concurrency) as threads, _Wall(walls, what, count):
                    list(threads.map(_call, calls))
        except BaseException:
            for pod in pods:
                pod.clear()
            raise
        self.results.parallel[FLOOR] = _joined(samples)

    def _parallel_pods(self, engine: Engine) -> None:
        count = self.amounts.parallel_pods
        pods = [EnginePod(engine, self.options, f"p{n}") for n in range(count)]
        samples = [Samples() for _ in pods]
        walls = self.results.walls.setdefault(engine.name, {})
        lists = self.results.lists.setdefault(engine.name, {})
        known = len(engine.errors)
        self._all_at_once(engine, [partial(_whole, samples[0], "pod up", pods[0].up)])
        if len(engine.errors) > known:
            self.results.skipped.append(f"parallel pods of {engine.name}, because the first one fails")
            return
        lists[1] = self._time_lists(engine)
        with _Wall(walls, "up", count - 1):
            ups = [partial(_whole, noted, "pod up", pod.up) for pod, noted in zip(pods, samples, strict=True)]
            self._all_at_once(engine, ups[1:])
        self.results.memory[engine.name][f"{count} pods"] = measure(
            engine.pid, [i for pod in pods for i in pod.ids if i]
        )
        lists[count] = self._time_lists(engine)
        more = max(0, self.amounts.listed - count)
        self._all_at_once(engine, [partial(pods[n % count].add_container, Samples()) for n in range(more)])
        lists[count + more] = self._time_lists(engine)
        self._all_at_once(engine, [pod.remove_extra_containers for pod in pods])
        with _Wall(walls, "down", count):
            downs = [partial(_whole, noted, "pod down", pod.down) for pod, noted in zip(pods, samples, strict=True)]
            self._all_at_once(engine, downs)
        self.results.memory[engine.name]["after"] = measure(engine.pid, [])
        self.results.parallel[engine.name] = _joined(samples)

    def _time_lists(self, engine: Engine) -> Samples:
        """Version between the lists, because their ratio is what counts."""
        m, runtime, samples = engine.m, engine.cri.runtime, Samples()
        calls: dict[str, Callable[[], Any]] = {
            "Version": lambda: runtime.Version(m.VersionRequest(), timeout=CALL_SECONDS),
            "ListContainers": lambda: runtime.ListContainers(m.ListContainersRequest(), timeout=CALL_SECONDS),
            "ListPodSandbox": lambda: runtime.ListPodSandbox(m.ListPodSandboxRequest(), timeout=CALL_SECONDS),
        }
        slow: dict[str, Callable[[], Any]] = {
            "ListContainerStats": lambda: runtime.ListContainerStats(
                m.ListContainerStatsRequest(), timeout=CALL_SECONDS
            ),
            "ListPodSandboxStats": lambda: runtime.ListPodSandboxStats(
                m.ListPodSandboxStatsRequest(), timeout=CALL_SECONDS
            ),
        }
        for _ in range(self.amounts.list_calls):
            for name, call in calls.items():
                with engine.noted(name), samples.timed(name):
                    call()
        for name, call in slow.items():
            known = len(engine.errors)
            for _ in range(5):
                with engine.noted(name), samples.timed(name):
                    call()
                if len(engine.errors) > known:
                    break
        return samples

    def pull(self, place: PullPlace) -> None:
        """Floor, tools and engines in turns; the first turn warms up caches and connections and does not count."""
        steps: dict[str, Callable[[Samples], None]] = {FLOOR: partial(pull_floor, place)}
        if has_tools():
            steps[TOOLS] = partial(pull_with_tools, place)
        engines = {engine.name: engine for engine in self.engines}
        steps |= {name: partial(pull_by_engine, engine) for name, engine in engines.items()}
        found = self.results.pulls
        for turn in range(self.amounts.pulls + 1):
            if not self.time_for(f"pulls from {turn}", 5 * len(steps)):
                return
            for name, step in steps.items():
                noted = found.setdefault(name, Samples()) if turn else Samples()
                if name not in engines:
                    step(noted)
                    continue
                with engines[name].noted("pull"), self._watched(self.results.pull_lag, PULL_LAG_MS, [engines[name]]):
                    step(noted)

    def _all_at_once(self, engine: Engine, calls: Sequence[Callable[[], None]]) -> None:
        def attempt(call: Callable[[], None]) -> None:
            with engine.noted("parallel pod"):
                call()

        with ThreadPoolExecutor(self.amounts.concurrency) as threads:
            list(threads.map(attempt, calls))

    def time_for(self, what: str, seconds: float) -> bool:
        if self.limit.allows(seconds):
            return True
        self.results.skipped.append(f"{what}, for want of time")
        return False


class _Life:
    """A floor pod's steps with its samples, so that a round treats it as it treats an engine's pod."""

    def __init__(self, pod: FloorPod | EnginePod, samples: Samples) -> None:
        self._pod = pod
        self._samples = samples

    def up(self) -> None:
        with uninterrupted():
            _whole(self._samples, "pod up", self._pod.up)

    def execute(self) -> None:
        self._pod.execute(self._samples)

    def down(self) -> None:
        with uninterrupted():
            _whole(self._samples, "pod down", self._pod.down)


class _EngineLife(_Life):
    """The same for an engine: its answers are checked, its errors are noted, and a pod that failed does no more."""

    def __init__(self, pod: EnginePod, samples: Samples, engine: Engine) -> None:
        super().__init__(pod, samples)
        self._engine_pod = pod
        self._engine = engine
        self._works = True

    def up(self) -> None:
        self._attempt(super().up)
        self._attempt(lambda: self._engine_pod.check_running(self._samples))

    def execute(self) -> None:
        self._attempt(super().execute)

    def down(self) -> None:
        self._attempt(super().down)
        self._attempt(self._engine_pod.check_gone)

    def _attempt(self, step: Callable[[], None]) -> None:
        if self._works:
            known = len(self._engine.errors)
            with self._engine.noted("serial pod"):
                step()
            self._works = len(self._engine.errors) == known


class _Wall:
    """Wall and CPU time of a crowd."""

    def __init__(self, found: dict[str, float], what: str, count: int) -> None:
        self._found, self._what, self._count = found, what, count

    def __enter__(self) -> None:
        self._began, self._busy = time.perf_counter(), machine_busy_ms()

    def __exit__(self, *_: object) -> None:
        self._found[f"all {self._what}, wall"] = (time.perf_counter() - self._began) * 1000
        self._found[f"one {self._what}, machine CPU"] = (machine_busy_ms() - self._busy) / self._count


def _call(call: Callable[[], None]) -> None:
    call()


def _whole(samples: Samples, step: str, run: Callable[[Samples], None]) -> None:
    """The sum of the steps that `run` notes, as one more step: our own work between them does not count."""
    own = Samples()
    try:
        run(own)
        samples.add(step, sum(sum(values) for values in own.by_step.values()))
    finally:
        samples.extend(own)


def _joined(many: Sequence[Samples]) -> Samples:
    joined = Samples()
    for samples in many:
        joined.extend(samples)
    return joined
