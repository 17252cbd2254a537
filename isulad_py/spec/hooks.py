"""Which hooks a container gets (oci-hooks(5), Hook schema, `when`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isulad_py.model.hooks import STAGES, Hook, HookEntry, StagedHook, When
from isulad_py.model.patterns import is_found


def staged(
    entries: Iterable[HookEntry],
    injected: Sequence[StagedHook],
    *,
    annotations: Mapping[str, str],
    command: str,
    bind_mounts: bool,
) -> dict[str, tuple[Hook, ...]]:
    """The OCI `hooks` object: the operator's own that match, then those of devices. `command` is argv[0];
    `bind_mounts` tells whether the request asks for any."""
    found: dict[str, list[Hook]] = {}
    for entry in entries:
        if matches(entry.when, annotations=annotations, command=command, bind_mounts=bind_mounts):
            for stage in entry.stages:
                found.setdefault(stage, []).append(entry.hook)
    for one in injected:
        found.setdefault(one.stage, []).append(one.hook)
    return {stage: tuple(found[stage]) for stage in STAGES if stage in found}


def matches(when: When, *, annotations: Mapping[str, str], command: str, bind_mounts: bool) -> bool:
    """All given conditions hold, and there is one. `always` and `hasBindMounts` that are false never hold, as in other
    engines."""
    conditions: list[bool] = []
    if when.always is not None:
        conditions.append(when.always)
    if when.has_bind_mounts is not None:
        conditions.append(when.has_bind_mounts and bind_mounts)
    if when.commands:
        conditions.append(any(is_found(pattern, command) for pattern in when.commands))
    conditions += [
        any(is_found(key, name) and is_found(value, text) for name, text in annotations.items())
        for key, value in when.annotations.items()
    ]
    return bool(conditions) and all(conditions)
