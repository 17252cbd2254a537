"""The table of keys as Markdown, for docs/configuration.md (`nox -s docs`). The daemon itself never imports this."""

from __future__ import annotations

import msgspec

from isulad_py.config.keys import KEYS, Effect, Key, Kind
from isulad_py.config.schema import Config


def keys() -> str:
    """Every key with flag, default and meaning."""
    rows = [
        f"| `{key.name}` | {', '.join(f'`{flag}`' for flag in key.flags)} | {_default(key)} | {_meaning(key)} |"
        for key in KEYS
    ]
    return "\n".join(["| key | flag | default | meaning |", "|---|---|---|---|", *rows])


def fields(entry: type[msgspec.Struct]) -> str:
    """The fields of a table's entry."""
    rows = [
        f"| `{field.encode_name}` | `{msgspec.json.encode(field.default).decode()}` |"
        for field in msgspec.structs.fields(entry)
    ]
    return "\n".join(["| field | default |", "|---|---|", *rows])


def _default(key: Key) -> str:
    value = getattr(Config(), key.attribute)
    if key.kind is Kind.DURATION:
        return f"`{value:g}s`"
    if isinstance(value, msgspec.Struct):
        value = {name: setting for name, setting in msgspec.to_builtins(value).items() if setting}
    return f"`{msgspec.json.encode(value).decode()}`" if value or value is False or value == 0 else ""


def _meaning(key: Key) -> str:
    marks = []
    if key.reloads:
        marks.append("*reloads*")
    if key.effect is Effect.NONE:
        marks.append("*no effect yet*")
    if key.effect is Effect.REFUSED:
        marks.append("*refused*")
    return " ".join([key.meaning, *(f"({mark})" for mark in marks)]).replace("|", "\\|")
