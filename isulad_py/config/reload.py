"""What SIGHUP may change while the daemon runs."""

from __future__ import annotations

from msgspec import Struct

from isulad_py.config.keys import KEYS
from isulad_py.config.schema import Config


class Difference(Struct, frozen=True, kw_only=True):
    """Names of the keys whose values differ."""

    reloadable: tuple[str, ...]
    restart: tuple[str, ...]
    """Changed in the file, but in force only after a restart."""


def difference(old: Config, new: Config) -> Difference:
    changed = [key for key in KEYS if getattr(old, key.attribute) != getattr(new, key.attribute)]
    return Difference(
        reloadable=tuple(key.name for key in changed if key.reloads),
        restart=tuple(key.name for key in changed if not key.reloads),
    )


def merged(old: Config, new: Config) -> Config:
    """`old` with the reloadable keys of `new`: what is in force afterwards."""
    values = {key.attribute: getattr(new if key.reloads else old, key.attribute) for key in KEYS}
    return Config(**values)
