"""Values written as text: durations, sizes, directory lists. Pure."""

from __future__ import annotations

import re
from typing import Final

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_POWER: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def duration_seconds(value: object) -> float:
    """Seconds from a number, or from parts such as `500ms`, `2m`, `1h30m`. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        raise TypeError(f"expected a duration, got {type(value).__name__}")
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or _DURATION.sub("", text):
        raise ValueError(f"{value!r} is not a duration")
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def size_bytes(text: str) -> int:
    """Bytes from `4096`, `30KB`, `1MB`, `2g`: powers of 1024, as iSulad reads them. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    return int(match[1]) * int(1024 ** _POWER[match[2].lower()])


def directories(value: object) -> list[object]:
    """The directories of a list, or of one string separated by comma, semicolon or colon (iSulad takes the first two
    in different places). Members of a list are not checked here."""
    if isinstance(value, str):
        return [part for part in re.split(r"[,;:]", value) if part]
    if isinstance(value, list):
        return value
    raise TypeError(f"expected directories, got {type(value).__name__}")
