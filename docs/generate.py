"""Writes those parts of the documents that are made from the code; `--check` only tells whether they have aged.

    python docs/generate.py [--check]

A part stands between `<!-- made: NAME -->` and `<!-- made end -->`.
"""

from __future__ import annotations

import csv
import enum
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from betterproto.casing import snake_case

from isulad_py.api.runtime import v1 as cri
from isulad_py.config import reference
from isulad_py.config.schema import RegistryEntry, RuntimeEntry
from isulad_py.model.lifecycle import CONTAINER_MOVES, POD_MOVES
from isulad_py.telemetry.metrics import Metrics
from isulad_py.wire.cri.checkpoint_servicer import CheckpointServicer
from isulad_py.wire.cri.image_servicer import ImageServicer
from isulad_py.wire.cri.runtime_servicer import RuntimeServicer
from isulad_py.wire.cri.stats_servicer import StatsServicer
from isulad_py.wire.cri.stream_servicer import StreamServicer

PROJECT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("architecture", "configuration", "operations", "compatibility", "cri")),
)
_PART = re.compile(r"(<!-- made: (?P<name>[a-z-]+) -->\n).*?(<!-- made end -->)", re.DOTALL)


def diagram(moves: Mapping[enum.Enum, frozenset[enum.Enum]]) -> str:
    """A Mermaid state diagram of a table of moves; the table's first state is where things begin."""
    states = list(moves)
    lines = [f"    [*] --> {states[0].value}"]
    for state in states:
        lines += [f"    {state.value} --> {other.value}" for other in states if other in moves[state]]
        if not moves[state]:
            lines.append(f"    {state.value} --> [*]")
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def rooms() -> str:
    """The rooms from top to bottom, as the import contract has them, each with its door-plate's first sentence."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    lines = ["| room | what it owns |", "|---|---|"]
    for layer in contract["layers"]:
        for room in layer.split(" | "):
            if room != "__main__":
                plate = import_module(f"isulad_py.{room}").__doc__ or ""
                sentence = " ".join(plate.split()).partition(". ")[0].removesuffix(".")
                lines.append(f"| `{room}` | {sentence} |")
    return "\n".join(lines)


def metrics() -> str:
    """Every metric of the daemon's own."""
    lines = ["| metric | labels | meaning |", "|---|---|---|"]
    for name, kind, labels, meaning in Metrics(version="").described():
        lines.append(f"| `{name}` ({kind}) | {', '.join(labels)} | {meaning} |")
    return "\n".join(lines)


def rpcs() -> str:
    """Which methods of CRI the servicers answer."""
    lines = ["| service | answered | not yet |", "|---|---|---|"]
    services = (
        (cri.RuntimeServiceBase(), (RuntimeServicer, StatsServicer, StreamServicer, CheckpointServicer)),
        (cri.ImageServiceBase(), (ImageServicer,)),
    )
    for service, servicers in services:
        names = [path.rpartition("/")[2] for path in service.__mapping__()]
        there = [name for name in names if any(hasattr(servicer, snake_case(name)) for servicer in servicers)]
        cells = (", ".join(each) for each in (there, [name for name in names if name not in there]))
        lines.append(f"| {type(service).__name__.removesuffix('Base')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cri_rows() -> list[dict[str, str]]:
    """What becomes of each call and field of CRI, as docs/cri-fields.tsv says."""
    with (PROJECT / "docs" / "cri-fields.tsv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def cri_calls() -> str:
    lines = ["| call | state | tests |", "|---|---|---|"]
    for row in cri_rows():
        service, slash, call = row["field"].partition("/")
        if slash:
            lines.append(f"| {service.removesuffix('Service')} `{call}` | {_told(row)} | {_tests(row)} |")
    return "\n".join(lines)


def cri_fields() -> str:
    """The message's name stands at its first field."""
    lines = ["| message | field | state | tests |", "|---|---|---|---|"]
    last = ""
    for row in cri_rows():
        message, dot, field = row["field"].partition(".")
        if dot:
            name = "" if message == last else f"**{message}**"
            lines.append(f"| {name} | `{field}` | {_told(row)} | {_tests(row)} |")
            last = message
    return "\n".join(lines)


def _told(row: dict[str, str]) -> str:
    return f"{row['state']}: {row['note']}" if row["note"] else row["state"]


def _tests(row: dict[str, str]) -> str:
    names = [name.removeprefix("tests/").replace("::", " ") for name in row["tests"].split(",") if name]
    return ", ".join(f"`{name}`" for name in names)


PARTS: dict[str, Callable[[], str]] = {
    "container-lifecycle": lambda: diagram(CONTAINER_MOVES),  # type: ignore[arg-type]  # Mapping's key is invariant
    "pod-lifecycle": lambda: diagram(POD_MOVES),  # type: ignore[arg-type]
    "rooms": rooms,
    "metrics": metrics,
    "rpcs": rpcs,
    "cri-calls": cri_calls,
    "cri-fields": cri_fields,
    "configuration-keys": reference.keys,
    "runtime-entry": lambda: reference.fields(RuntimeEntry),
    "registry-entry": lambda: reference.fields(RegistryEntry),
}


def renewed(text: str) -> str:
    """The document with every made part as the code has it now."""

    def part(found: re.Match[str]) -> str:
        return f"{found.group(1)}{PARTS[found.group('name')]()}\n{found.group(3)}"

    return _PART.sub(part, text)


def aged() -> list[str]:
    """Documents whose made parts are not what the code says."""
    return [name for name in DOCUMENTS if (text := (PROJECT / name).read_text(encoding="utf-8")) != renewed(text)]


def main() -> int:
    names = aged()
    if "--check" in sys.argv[1:]:
        for name in names:
            print(f"{name} has aged: run python docs/generate.py")
        return 1 if names else 0
    for name in names:
        path = PROJECT / name
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{name} renewed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
