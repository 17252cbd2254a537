"""Command-line flags: one for each key, iSulad's own spellings included. Values stay raw: `load` converts them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from isulad_py.config.keys import BY_NAME, KEYS, Key, Kind

DEFAULT_FILE: Final = "/etc/isulad/daemon.json"

_PARTS: Final[dict[str, tuple[str, str]]] = {
    # iSulad's flags for one field of an object
    "tlscacert": ("tls-config", "CAFile"),
    "tlscert": ("tls-config", "CertFile"),
    "tlskey": ("tls-config", "KeyFile"),
    "container-log-driver": ("container-log", "driver"),
    "container-log-opts": ("container-log", "opts"),
}
_METAVAR: Final = {
    Kind.TEXT: "TEXT",
    Kind.BOOL: "true|false",
    Kind.INT: "N",
    Kind.LIST: "ITEM",
    Kind.MAP: "NAME=VALUE",
    Kind.PATHS: "DIRS",
    Kind.DURATION: "DURATION",
    Kind.OBJECT: "FIELD=VALUE",
}
_REPEATABLE: Final = frozenset({Kind.LIST, Kind.MAP, Kind.OBJECT})


Given = str | list[str]


class FlagError(Exception):
    """The command line cannot be read; exit status 125."""


class Arguments(NamedTuple):
    file: str | None
    """From --config, absolute (SIGHUP reads it again); None for the default file, which need not exist."""
    given: dict[str, Given]
    """Raw value by key name: a string, or the list of a repeatable flag's strings."""
    version: bool = False
    validate: bool = False
    help: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


def parser() -> argparse.ArgumentParser:
    made = _Parser(
        prog="isulad",
        add_help=False,
        allow_abbrev=False,
        description="A Kubernetes container engine (CRI) in one process. Flags override the configuration file; "
        "repeatable flags add to it.",
        epilog="isulad image --help: images of this node, in and out.",
    )
    made.add_argument("--help", action="store_true", help="this text")
    made.add_argument("-V", "--version", action="store_true", help="print the version")
    made.add_argument("--config", metavar="FILE", help=f"configuration file (default {DEFAULT_FILE}, if it exists)")
    made.add_argument("--validate-config", action="store_true", help="report every finding and exit")
    for key in KEYS:
        _add(made, key)
    for flag, (name, field) in _PARTS.items():
        made.add_argument(f"--{flag}", dest=f"part:{flag}", action="append", help=f"{field} of {name}", metavar="TEXT")
    return made


def _add(made: argparse.ArgumentParser, key: Key) -> None:
    options: dict[str, Any] = {"dest": key.name, "metavar": _METAVAR[key.kind], "help": key.meaning.replace("%", "%%")}
    if key.kind in _REPEATABLE:
        options["action"] = "append"
    elif key.kind is Kind.BOOL:
        options |= {"nargs": "?", "const": "true"}
    names = list(key.flags)
    if key.flag and key.flag != "host":
        names.append(f"--{key.name}")
    made.add_argument(*names, **options)


def parse(argv: Sequence[str]) -> Arguments:
    """Raises FlagError."""
    found = vars(parser().parse_args(list(argv)))
    given = {name: value for name, value in found.items() if name in BY_NAME and value is not None}
    for flag, (name, field) in _PARTS.items():
        for value in found[f"part:{flag}"] or ():
            given.setdefault(name, []).append(f"{field}={value}")
    return Arguments(
        file=str(Path(found["config"]).absolute()) if found["config"] else None,
        given=given,
        version=found["version"],
        validate=found["validate_config"],
        help=found["help"],
    )


def raw_value(key: Key, given: Given) -> object:
    """What the flag says as it would stand in daemon.json. Raises ValueError where it has no such form."""
    if isinstance(given, list):
        return _raw_list(key, given)
    if key.kind is Kind.BOOL:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(given.lower(), given)
    if key.kind is Kind.INT:
        return _number(given)
    return given


def _raw_list(key: Key, given: Sequence[str]) -> object:
    if key.kind is Kind.LIST:
        return [_number(item) for item in given] if key.name == "sup-groups" else list(given)
    return _table(key, given)


def _number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _table(key: Key, items: Sequence[str]) -> dict[str, object]:
    table: dict[str, object] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise ValueError(f"{item!r} is not {_METAVAR[key.kind]}")
        entry = _entry(key, name, value)
        known = table.get(name)
        table[name] = {**known, **entry} if isinstance(known, dict) and isinstance(entry, dict) else entry
    return table


def _entry(key: Key, name: str, value: str) -> object:
    """A value of a table: JSON where it is an object or list; short forms where the table's entries have one."""
    if value[:1] in {"{", "["}:
        import msgspec

        return msgspec.json.decode(value)
    if key.name == "runtimes":
        return {"path": value}
    if key.name == "registries":
        return {"mirrors": value.split(",")}
    if key.name == "default-ulimits":
        soft, _, hard = value.partition(":")
        return {"Name": name, "Soft": _number(soft), "Hard": _number(hard or soft)}
    if key.name == "container-log" and name == "opts":
        option, _, setting = value.partition("=")
        return {option: setting}
    return value
