"""Refusals that several parts of the recipe share; each names the CRI field."""

from __future__ import annotations

from isulad_py.model.errors import InvalidInput


def text(value: str, field: str) -> str:
    """`value`, which must be able to become a C string."""
    if "\0" in value:
        raise InvalidInput(f"{field}: must not contain a NUL byte")
    return value


def absolute_path(value: str, field: str) -> str:
    """`value`, which must be absolute."""
    text(value, field)
    if not value.startswith("/"):
        raise InvalidInput(f"{field}: must be an absolute path, not {value!r}")
    return value


def inner_path(value: str, field: str) -> str:
    """An absolute path inside the container, without `.`, empty or trailing parts; one that climbs is refused."""
    parts = absolute_path(value, field).split("/")
    if ".." in parts:
        raise InvalidInput(f"{field}: must not contain '..': {value!r}")
    return "/" + "/".join(part for part in parts if part not in {"", "."})


def not_negative(value: int, field: str) -> int:
    if value < 0:
        raise InvalidInput(f"{field}: must not be negative, not {value}")
    return value
