from __future__ import annotations

from typing import Any

import pytest

from isulad_py.model.hooks import Hook, HookEntry, StagedHook, When
from isulad_py.spec.hooks import matches, staged

CONTAINER: dict[str, Any] = {"annotations": {"team": "red", "size": "9"}, "command": "/bin/sh", "bind_mounts": True}


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        (When(), False),
        (When(always=True), True),
        (When(always=False), False),
        (When(has_bind_mounts=True), True),
        (When(has_bind_mounts=False), False),
        (When(commands=("^/bin/bash$", "sh$")), True),
        (When(commands=("^sh",)), False),
        (When(annotations={"^te": "d$"}), True),
        (When(annotations={"^te": "d$", "size": "^1"}), False),
        (When(annotations={"team": "9"}), False),
        (When(always=True, commands=("^sh",)), False),
        (When(always=True, commands=("sh",), annotations={"team": ""}, has_bind_mounts=True), True),
    ],
)
def test_conditions(when: When, holds: bool) -> None:
    assert matches(when, **CONTAINER) is holds


def test_without_bind_mounts() -> None:
    assert not matches(When(has_bind_mounts=True), **{**CONTAINER, "bind_mounts": False})


def test_order_and_stages() -> None:
    one, two, three = (Hook(path=f"/bin/{name}") for name in ("one", "two", "three"))
    entries = (
        HookEntry(stages=("poststop", "prestart"), hook=one, when=When(always=True)),
        HookEntry(stages=("prestart",), hook=two, when=When(always=True)),
        HookEntry(stages=("prestart",), hook=three, when=When(always=False)),
    )
    found = staged(entries, (StagedHook(stage="prestart", hook=three),), **CONTAINER)
    assert found == {"prestart": (one, two, three), "poststop": (one,)}
    assert list(found) == ["prestart", "poststop"]
