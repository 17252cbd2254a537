"""Checks of the files and directories that add to containers: OCI hooks, CDI specifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from isulad_py.config.findings import Finding, Severity
from isulad_py.config.schema import Config
from isulad_py.model.errors import InvalidInput
from isulad_py.model.hooks import FILE_LIMIT_BYTES, HookEntry, parse_hook_file, parse_hook_spec

Parse = Callable[[bytes], tuple[HookEntry, ...]]


def check(config: Config, exists: Callable[[str], bool]) -> Iterator[Finding]:
    yield from _absolute("cdi-spec-dirs", config.cdi_spec_dirs)
    yield from _absolute("hooks-dir", config.hooks_dir)
    if config.enable_cdi and not config.cdi_spec_dirs:
        yield Finding(id="conflict", key="enable-cdi", message="there are no cdi-spec-dirs", severity=Severity.WARNING)
    if Path(config.hook_spec).is_absolute():
        yield from _file("hook-spec", Path(config.hook_spec), parse_hook_spec, exists)
    for directory in map(Path, config.hooks_dir):
        if directory.is_absolute():
            yield from _directory(directory, exists)


def _absolute(key: str, directories: tuple[str, ...]) -> Iterator[Finding]:
    for directory in directories:
        if not Path(directory).is_absolute():
            yield Finding(id="bad-value", key=key, message=f"{directory!r} is not an absolute path")


def _directory(directory: Path, exists: Callable[[str], bool]) -> Iterator[Finding]:
    key = "hooks-dir"
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        yield Finding(id="missing-file", key=key, message=f"no directory {directory}", severity=Severity.WARNING)
        return
    except OSError as error:
        yield Finding(id="unreadable", key=key, message=f"{directory}: {error.strerror or error}")
        return
    for path in paths:
        yield from _file(key, path, lambda data: (parse_hook_file(data),), exists)


def _file(key: str, path: Path, parse: Parse, exists: Callable[[str], bool]) -> Iterator[Finding]:
    """A hook that cannot be read keeps the daemon from starting, because containers without it may not be what the
    operator wants; a program may still be installed later."""
    try:
        if not path.is_file():
            yield Finding(id="missing-file", key=key, message=f"no file {path}")
            return
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT_BYTES + 1)
        if len(data) > FILE_LIMIT_BYTES:
            yield Finding(id="bad-value", key=key, message=f"{path} is longer than {FILE_LIMIT_BYTES} bytes")
            return
        entries = parse(data)
    except OSError as error:
        yield Finding(id="unreadable", key=key, message=f"{path}: {error.strerror or error}")
        return
    except InvalidInput as error:
        yield Finding(id="bad-value", key=key, message=f"{path}: {error}")
        return
    for program in sorted({entry.hook.path for entry in entries}):
        if not exists(program):
            message = f"{path}: no program {program}: containers that get this hook will not start"
            yield Finding(id="missing-program", key=key, message=message, severity=Severity.WARNING)
