"""The typed form of `log-opts`, for the file driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from isulad_py.config.schema import Config
from isulad_py.config.values import size_bytes

NAMES: Final = ("log-path", "log-file-mode", "max-file", "max-size")
SMALLEST_BYTES: Final = 4096


class LogOptions(Struct, frozen=True, kw_only=True):
    path: str
    """Of the newest file; older ones carry .1, .2 and so on."""
    mode: int
    files: int
    """Kept at most, the newest included."""
    size_bytes: int
    """At which a file is put aside."""


def read_mode(options: Mapping[str, str]) -> int:
    """Permission bits, written in octal. Raises ValueError."""
    mode = int(options.get("log-file-mode", "0600"), 8)
    if not 0 <= mode <= 0o777:
        raise ValueError("permissions go from 0000 to 0777")
    return mode


def read_files(options: Mapping[str, str]) -> int:
    """Raises ValueError."""
    files = int(options.get("max-file", "7"))
    if not 1 <= files <= 1000:
        raise ValueError("must lie between 1 and 1000")
    return files


def read_size(options: Mapping[str, str]) -> int:
    """Raises ValueError."""
    size = size_bytes(options.get("max-size", "1MB"))
    if size < SMALLEST_BYTES:
        raise ValueError("must be at least 4KB")
    return size


def log_options(config: Config) -> LogOptions:
    """Of a validated configuration; without `log-path` the file lies under the graph root, as iSulad's does."""
    options = config.log_opts
    directory = options.get("log-path") or config.graph
    return LogOptions(
        path=f"{directory.rstrip('/')}/isulad.log",
        mode=read_mode(options),
        files=read_files(options),
        size_bytes=read_size(options),
    )
