"""One raw value to the type of its key, so that every wrong type is found, not only the first."""

from __future__ import annotations

import functools
import typing
from typing import Any

import msgspec

from isulad_py.config.keys import Key, Kind
from isulad_py.config.schema import Config
from isulad_py.config.values import directories, duration_seconds

_HINTS = {
    Kind.TEXT: 'a string, such as "name"',
    Kind.BOOL: "true or false",
    Kind.INT: "a whole number",
    Kind.LIST: 'a list, such as ["one", "two"]',
    Kind.MAP: 'an object, such as {"name": "value"}',
    Kind.PATHS: 'directories, such as "/opt/cni/bin,/usr/lib/cni"',
    Kind.DURATION: 'a duration, such as "30s" or "2m"',
    Kind.OBJECT: "an object",
}


class WrongType(ValueError):
    """The message says what was expected; `hint` shows how the value is written."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@functools.cache
def _types() -> dict[str, Any]:
    return typing.get_type_hints(Config)


def convert(key: Key, raw: object) -> object:
    """The value of `key` from JSON. Raises WrongType."""
    try:
        if key.kind is Kind.DURATION:
            return duration_seconds(raw)
        if key.kind is Kind.PATHS:
            raw = directories(raw)
        value: object = msgspec.convert(raw, _types()[key.attribute])
    except (ValueError, TypeError) as error:  # msgspec's ValidationError is a ValueError
        raise WrongType(_plain(str(error)), f"write {_HINTS[key.kind]}") from error
    return value


def _plain(message: str) -> str:
    text = message.replace("`", "").replace(" - at $", " at ").removesuffix(" at ")
    return text[:1].lower() + text[1:]
