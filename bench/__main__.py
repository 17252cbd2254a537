"""Measure floors and CRI engines in one run, in turns.

Exit status: 0 measured, 1 an engine made errors or left something behind, 2 it cannot run here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.clock import Limit, Samples
from bench.engine import Engine, EnginePod, PodOptions
from bench.fetch import unpack
from bench.floors import FloorPlace
from bench.phases import Amounts, Bench
from bench.pulls import PullPlace
from bench.report import as_json, as_text, targets
from bench.streams import measure_streams
from tests import images
from tests.stand.daemon import stand_daemon
from tests.stand.disk import journaled_disk, memory_disk
from tests.stand.ending import ended_by_signals, leave
from tests.stand.leftovers import Counts, count
from tests.stand.mark import Mark, make_mark
from tests.stand.network import stand_network
from tests.stand.registry import registry

OWN = "own"
PHASES = ("serial", "memory", "parallel", "pull", "streams")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=unix:///SOCKET",
                        help=f"a CRI engine; may be repeated; `{OWN}` starts ours (the default)")  # fmt: skip
    parser.add_argument("--metrics", action="append", default=[], metavar="NAME=URL",
                        help="that engine's /metrics, for the loop lag of an isulad-py")  # fmt: skip
    parser.add_argument("--image", help="image of the pods, for engines that cannot pull from a loopback registry")
    parser.add_argument("--pull-image", help="image of the pulls, for the same")
    parser.add_argument("--runtime-handler", default="")
    parser.add_argument("--seccomp", choices=("unconfined", "default"), default="unconfined")
    parser.add_argument("--phases", default=",".join(PHASES), help="which of %(default)s")
    parser.add_argument("--pods", type=int, default=10, help="serial pods")
    parser.add_argument("--parallel", type=int, default=50, help="pods at once")
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--containers", type=int, default=100, help="containers in the longest list")
    parser.add_argument("--pulls", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=170, help="what does not fit into this time is left out")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="default: %(default)s")
    return parser.parse_args(arguments)


def named(pairs: list[str], what: str) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not re.fullmatch(r"[a-z0-9-]{1,20}", name):
            raise SystemExit(f"bench: {what} {pair!r}: want NAME=VALUE, NAME of a-z, 0-9 and -")
        found[name] = value
    return found


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, mark: Mark, stack: ExitStack) -> tuple[Bench, dict[str, object]]:
    disk = stack.enter_context(journaled_disk(mark))
    run = stack.enter_context(memory_disk(mark))
    host = stack.enter_context(registry(disk / "registry"))
    engines = start_engines(options, mark, stack, disk=disk, run=run, host=host)
    say("making and pushing images")
    layer, layers = images.busybox_layer(), images.bench_layers()
    images.push(host, "bench/busybox", "latest", images.make_image([layer], config={"Cmd": ["sh"]}))
    images.push(host, "bench/pull", "latest", images.make_image(layers, config={"Cmd": ["sh"]}))
    for engine in engines:
        engine.image = options.image or f"{host}/bench/busybox:latest"
        engine.pull_image = options.pull_image or f"{host}/bench/pull:latest"
        stack.enter_context(held_image(engine, mark.word))
    network = stack.enter_context(stand_network(mark, mark.root / "floor-cni", "f"))
    place = FloorPlace(
        disk=disk,
        run=run,
        rootfs=unpack(layer, disk / "busybox"),
        conflist=network.conflist,
        cni_bin_dir=network.bin_dir,
        cgroup_parent=mark.cgroup_parent,
    )
    pods = PodOptions(mark.word, mark.root, mark.cgroup_parent, options.runtime_handler, options.seccomp == "default")
    if pods.seccomp_default:
        place = replace(place, seccomp=borrowed_seccomp(engines[0], pods))
    amounts = Amounts(
        serial_pods=options.pods,
        parallel_pods=options.parallel,
        concurrency=options.concurrency,
        listed=options.containers,
        pulls=options.pulls,
    )
    bench = Bench(engines, pods, place, amounts, Limit(options.seconds - (time.monotonic() - options.began)))
    run_phases(bench, options.phases.split(","), PullPlace(host, "bench/pull", "latest", layers, disk), run)
    about: dict[str, object] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}",
        "engines": {engine.name: engine.version() for engine in engines},
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    return bench, about


def start_engines(
    options: argparse.Namespace, mark: Mark, stack: ExitStack, *, disk: Path, run: Path, host: str
) -> list[Engine]:
    wanted = options.engine or [OWN]
    metrics = named(options.metrics, "--metrics")
    engines = []
    if OWN in wanted:
        network = stack.enter_context(stand_network(mark, mark.root / "cni"))
        daemon = stack.enter_context(stand_daemon(mark, disk / "graph", run, network, insecure_registries=[host]))
        engines.append(Engine("isulad-py", daemon.address, daemon.metrics_url))
    for name, address in named([each for each in wanted if each != OWN], "--engine").items():
        if not address.startswith("unix:///"):
            raise SystemExit(f"bench: --engine {name}: {address!r} does not begin with unix:///")
        engines.append(Engine(name, address, metrics.get(name, "")))
    for engine in engines:
        stack.callback(engine.cri.channel.close)
        stack.callback(engine.clear, mark.word)
        say(f"{engine.name}: {engine.version()}, pid {engine.pid}")
    return engines


@contextlib.contextmanager
def held_image(engine: Engine, word: str) -> Iterator[None]:
    """The pods' image is pulled, and removed at the end where it was not there before."""
    known = engine.has_image(engine.image)
    engine.pull(engine.image)
    try:
        yield
    finally:
        if not known:
            with engine.noted("removing the image"):
                engine.clear(word)
                engine.remove_image(engine.image)


def borrowed_seccomp(engine: Engine, options: PodOptions) -> dict[str, object] | None:
    """The first engine's default profile, so that the floor bears the same filter."""
    pod = EnginePod(engine, options, "probe")
    pod.up(Samples())
    spec = pod.runtime_spec()
    pod.down(Samples())
    seccomp: dict[str, object] | None = spec.get("linux", {}).get("seccomp")
    if not seccomp:
        say(f"{engine.name} does not show its runtime spec: the floors run without seccomp")
    return seccomp


def finish(mark: Mark, before: Counts) -> int:
    """Look at what is left; counts of the whole machine are for information, because others work on it too."""
    clean = leave(mark, say)
    after = count()
    names = before.__dataclass_fields__
    counts = ", ".join(f"{getattr(before, name)} -> {getattr(after, name)} {name.replace('_', ' ')}" for name in names)
    say(f"the whole machine, others included: {counts}")
    say("nothing is left behind" if clean else "something was left behind")
    return 0 if clean else 1


def run_phases(bench: Bench, wanted: list[str], pulls: PullPlace, folder: Path) -> None:
    """`folder` is in memory."""
    steps: dict[str, Callable[[], None]] = {
        "serial": bench.serial,
        "memory": bench.memory_of_few,
        "parallel": bench.parallel,
        "pull": partial(bench.pull, pulls),
        "streams": partial(measure_streams, bench, folder),
    }
    bench.begin()
    for name in PHASES:
        if name in wanted:
            began = time.monotonic()
            steps[name]()
            say(f"{name}: {time.monotonic() - began:.0f} s")


def main() -> int:
    options = parse(sys.argv[1:])
    options.began = time.monotonic()
    if os.geteuid() != 0:
        say("needs root: namespaces, mounts and CNI plugins are what it measures")
        return 2
    before = count()
    mark = make_mark("ib")
    status = 0
    try:
        with ended_by_signals(), ExitStack() as stack:
            bench, about = measure(options, mark, stack)
            print(as_text(bench.results, bench.engines), flush=True)
            options.json.parent.mkdir(parents=True, exist_ok=True)
            document = as_json(bench.results, bench.engines, about)
            options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
            say(f"all samples are in {options.json}")
            status = 1 if any(engine.errors for engine in bench.engines) else 0
            missed = [t.what for engine in bench.engines for t in targets(bench.results, engine) if t.met is False]
            say(f"targets missed: {'; '.join(missed)}" if missed else "no target missed")
    except KeyboardInterrupt as interrupt:
        say(f"ended by {interrupt}; cleaned up")
        status = 130
    finally:
        status = max(status, finish(mark, before))
    return status


if __name__ == "__main__":
    sys.exit(main())
