"""OCI hooks, and the files in which operators declare them: pure, because the configuration's checks read them too.

`hook-spec` is one OCI `hooks` object (config.md, POSIX-platform Hooks) for every container; files of hooks.d
directories are of oci-hooks(5), schema 1.0.0, each with its conditions.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from isulad_py.model.errors import InvalidInput
from isulad_py.model.patterns import check_pattern

Stage = Literal["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
STAGES: Final[tuple[Stage, ...]] = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)
FILE_LIMIT_BYTES: Final = 256 * 1024
MOST_HOOKS: Final = 256
"""In one file."""


class Hook(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A program that the OCI runtime runs, as the specification writes it."""

    path: str
    args: tuple[str, ...] = ()
    """With argv[0]."""
    env: tuple[str, ...] = ()
    timeout: int | None = None
    """Seconds."""


class StagedHook(Struct, frozen=True, kw_only=True):
    stage: Stage
    hook: Hook


class When(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """All that are given must hold; with none given, the hook is never run."""

    always: bool | None = None
    annotations: dict[str, str] = {}
    """Patterns of a key and of its value; each pair must be found among the annotations."""
    commands: tuple[str, ...] = ()
    """Patterns, one of which must be found in argv[0]."""
    has_bind_mounts: bool | None = None


class HookEntry(Struct, frozen=True, kw_only=True):
    """A hook and the containers that it is for."""

    stages: tuple[Stage, ...]
    hook: Hook
    when: When


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: Literal["1.0.0"]
    hook: Hook
    when: When
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]


_decode_spec = msgspec.json.Decoder(dict[Stage, tuple[Hook, ...]]).decode
_decode_file = msgspec.json.Decoder(_File).decode


def parse_hook_spec(data: bytes) -> tuple[HookEntry, ...]:
    """The hooks of a `hook-spec` file, in its order. Raises InvalidInput naming the member."""
    try:
        stages = _decode_spec(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not an OCI hooks object: {error}") from error
    if sum(map(len, stages.values())) > MOST_HOOKS:
        raise InvalidInput(f"more than {MOST_HOOKS} hooks")
    for stage, hooks in stages.items():
        for index, hook in enumerate(hooks):
            check_hook(hook, f"{stage}[{index}]")
    return tuple(
        HookEntry(stages=(stage,), hook=hook, when=When(always=True)) for stage in stages for hook in stages[stage]
    )


def parse_hook_file(data: bytes) -> HookEntry:
    """A file of a hooks.d directory. Raises InvalidInput naming the member."""
    try:
        file = _decode_file(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a hook of schema 1.0.0: {error}") from error
    check_hook(file.hook, "hook")
    patterns = [*file.when.annotations, *file.when.annotations.values(), *file.when.commands]
    for pattern in patterns:
        check_pattern(pattern)
    return HookEntry(stages=tuple(dict.fromkeys(file.stages)), hook=file.hook, when=file.when)


def check_hook(hook: Hook, field: str) -> None:
    """Raises InvalidInput naming the member for what no runtime would take."""
    if not hook.path.startswith("/"):
        raise InvalidInput(f"{field}.path: must be an absolute path, not {hook.path!r}")
    if hook.timeout is not None and hook.timeout <= 0:
        raise InvalidInput(f"{field}.timeout: must be above 0 seconds, not {hook.timeout}")
    for entry in hook.env:
        if entry.find("=") <= 0:
            raise InvalidInput(f"{field}.env: not of the form NAME=VALUE: {entry!r}")
    if any("\0" in text for text in (hook.path, *hook.args, *hook.env)):
        raise InvalidInput(f"{field}: must not contain a NUL byte")
