"""File and flags to one configuration: default, then file, then flag; lists and tables accumulate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from isulad_py.config.convert import WrongType, convert
from isulad_py.config.findings import FLAG, Finding
from isulad_py.config.flags import DEFAULT_FILE, Given, raw_value
from isulad_py.config.keys import BY_NAME, KEYS, Key, Kind
from isulad_py.config.schema import Config

LIMIT_BYTES: Final = 1024 * 1024
_EXCLUSIVE: Final = frozenset({"hosts", "default-ulimits"})
"""As in iSulad, given in the file and as a flag is an error: which of them was meant cannot be known."""
_EMPTY_IS_DEFAULT: Final = frozenset(
    {"pod-sandbox-image", "network-plugin", "cni-bin-dir", "cni-conf-dir", "pidfile", "monitor", "default-runtime"}
)
"""iSulad's packaged file writes these as empty strings."""


class Loaded(Struct, frozen=True, kw_only=True):
    config: Config
    findings: tuple[Finding, ...]
    given: dict[str, str]
    """Where each key that was given came from: the file's path, or the command line."""


def load(file: str | None, flags: Mapping[str, Given]) -> Loaded:
    """Reads `file` (None: the default one, if it exists) and puts `flags` over it. Never raises: see the findings.

    A key with a finding keeps its default, so that all other checks can still be made.
    """
    findings: list[Finding] = []
    path = file or DEFAULT_FILE
    raw = _read(path, must_exist=file is not None, findings=findings)
    findings.extend(_unknown(name, path) for name in raw if name not in BY_NAME)
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for key in KEYS:
        sources = _sources(key, raw, flags, path, findings)
        if not sources:
            continue
        values[key.attribute] = convert(key, _merge(key, [value for _, value in sources]))
        given[key.name] = sources[-1][0]
    config = Config(**values)
    if not values.get("pidfile"):
        config = msgspec.structs.replace(config, pidfile=f"{config.state.rstrip('/')}.pid")
    return Loaded(config=config, findings=tuple(findings), given=given)


def _sources(
    key: Key, raw: Mapping[str, object], flags: Mapping[str, Given], path: str, findings: list[Finding]
) -> list[tuple[str, object]]:
    """What is said about one key, file first, each with its place; wrong ones become findings."""
    said: list[tuple[str, object]] = []
    if key.name in raw:
        _check(key, path, raw[key.name], said, findings)
    if key.name in flags:
        try:
            _check(key, FLAG, raw_value(key, flags[key.name]), said, findings)
        except ValueError as error:
            findings.append(Finding(id="bad-value", key=key.name, message=str(error), source=FLAG))
    if key.name in _EXCLUSIVE and key.name in raw and key.name in flags:
        hint = f"remove {key.flags[-1]} or the key"
        message = f"given both in {path} and on the command line"
        findings.append(Finding(id="conflict", key=key.name, message=message, hint=hint, source=FLAG))
    return said


def _check(key: Key, source: str, value: object, said: list[tuple[str, object]], findings: list[Finding]) -> None:
    if value == "" and key.name in _EMPTY_IS_DEFAULT:
        return
    try:
        convert(key, value)
    except WrongType as error:
        findings.append(Finding(id="wrong-type", key=key.name, message=str(error), hint=error.hint, source=source))
    else:
        said.append((source, value))


def _merge(key: Key, values: list[object]) -> object:
    first, *rest = values
    for value in rest:
        if key.kind is Kind.LIST and isinstance(first, list) and isinstance(value, list):
            first = [*first, *value]
        elif isinstance(first, dict) and isinstance(value, dict):
            first = {**first, **value}
        else:
            first = value
    return first


def _read(path: str, *, must_exist: bool, findings: list[Finding]) -> dict[str, object]:
    try:
        data = _bytes(path)
        found = msgspec.json.decode(data) if data.strip() else {}
    except FileNotFoundError:
        if must_exist:
            findings.append(Finding(id="unreadable", key="", message="no such file", source=path))
        return {}
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        findings.append(Finding(id="unreadable", key="", message=message, source=path))
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        findings.append(Finding(id="syntax", key="", message=_where(data, str(error)), source=path))
        return {}
    if not isinstance(found, dict):
        message = f"must be a JSON object, not {type(found).__name__}"
        findings.append(Finding(id="syntax", key="", message=message, source=path))
        return {}
    return found


def _bytes(path: str) -> bytes:
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size > LIMIT_BYTES:
            raise OSError(f"larger than {LIMIT_BYTES} bytes")
        return file.read(LIMIT_BYTES)


def _where(data: bytes, message: str) -> str:
    """msgspec tells the byte; people count lines and columns."""
    _, _, tail = message.rpartition("(byte ")
    offset = int(tail.rstrip(")")) if tail.rstrip(")").isdigit() else len(data)
    before = data[:offset]
    column = offset - (before.rfind(b"\n") + 1) + 1
    text = message.partition(" (byte ")[0].removeprefix("JSON is malformed: ")
    line = before.count(b"\n") + 1
    return f"line {line}, column {column}: {text[:1].lower()}{text[1:]}"


def _unknown(name: str, path: str) -> Finding:
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/configuration.md lists all keys"
    return Finding(id="unknown-key", key=name, message="no such key", hint=hint, source=path)
