"""Refusals that several parts of the recipe share; each names the CRI field."""

from __future__ import annotations

from typing import Final

from isulad_py.model.errors import InvalidInput

PATH_LIMIT: Final = 3072
"""Bytes of a path in a container: the kernel takes 4,096, with the path of the root file system before it."""
NAME_LIMIT: Final = 255
"""Bytes of one name in a path (NAME_MAX)."""


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
    """An absolute path inside the container, without `.`, empty or trailing parts; one that climbs, or that no kernel
    takes, is refused."""
    parts = absolute_path(value, field).split("/")
    encoded = value.encode(errors="surrogateescape")
    if len(encoded) > PATH_LIMIT or max(map(len, encoded.split(b"/"))) > NAME_LIMIT:
        raise InvalidInput(f"{field}: longer than {PATH_LIMIT} bytes, or with a name longer than {NAME_LIMIT}")
    if ".." in parts:
        raise InvalidInput(f"{field}: must not contain '..': {value!r}")
    return "/" + "/".join(part for part in parts if part not in {"", "."})


def not_negative(value: int, field: str) -> int:
    if value < 0:
        raise InvalidInput(f"{field}: must not be negative, not {value}")
    return value
