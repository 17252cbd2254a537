"""Files that operators may change while the daemon runs: read again when they have changed, parsed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from isulad_py.host import files
from isulad_py.host.failures import translate
from isulad_py.model.errors import EngineError, ResourceExhausted

T = TypeVar("T")
Stamp = tuple[int, int, int, int]

MOST_FILES: Final = 1000
"""In one directory."""


class FileCache(Generic[T]):
    """Blocking: called in a thread. Two threads at once do the same work twice, and nothing worse."""

    def __init__(self, parse: Callable[[str, bytes], T], *, limit_bytes: int) -> None:
        self._parse = parse
        self._limit_bytes = limit_bytes
        self._kept: dict[str, tuple[Stamp, T | EngineError]] = {}

    def read(self, paths: Iterable[str]) -> dict[str, T | EngineError]:
        """Each file's content, or why there is none. What is not among `paths` any more is forgotten."""
        before = self._kept
        kept: dict[str, tuple[Stamp, T | EngineError]] = {}
        found: dict[str, T | EngineError] = {}
        for path in paths:
            try:
                stamp = _stamp(path)
                known = before.get(path)
                kept[path] = known if known is not None and known[0] == stamp else (stamp, self._load(path))
                found[path] = kept[path][1]
            except EngineError as error:
                found[path] = error
        self._kept = kept
        return found

    def _load(self, path: str) -> T | EngineError:
        try:
            return self._parse(path, files.read_limited(path, self._limit_bytes))
        except EngineError as error:
            return error


def names(directory: str, suffixes: tuple[str, ...]) -> list[str]:
    """Of a directory's files, in order; none where there is no directory. Raises HostFailure or PermissionDenied for
    one that cannot be read, ResourceExhausted for one that is too full."""
    try:
        found = sorted(name for name in os.listdir(directory) if name.endswith(suffixes))  # noqa: PTH208 - names
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise translate(f"list {directory}", error) from error
    if len(found) > MOST_FILES:
        raise ResourceExhausted(f"list {directory}: more than {MOST_FILES} files")
    return found


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise translate(f"read {path}", error) from error
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
