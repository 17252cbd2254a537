"""Views where nothing can be mounted; mounted ones: tests/contract/test_layers.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.model.ids import ChainId
from isulad_py.storage.paths import OverlayPaths
from isulad_py.storage.trash import Trash
from isulad_py.storage.views import Views
from tests.fakes.tasks import TestTasks

CHAIN = ChainId("sha256:" + "0" * 64)


@pytest.fixture
def views(tmp_path: Path) -> Views:
    paths = OverlayPaths(str(tmp_path))
    paths.make()
    return Views(paths, Trash(paths.trash, tasks=TestTasks()))


def test_a_mount_that_fails_leaves_no_view(views: Views) -> None:
    with pytest.raises(EngineError, match="mount overlay"):
        views.mount("key", (CHAIN,))  # no such layer, or no right to mount
    assert views.keys() == frozenset()


def test_release_is_idempotent(views: Views) -> None:
    views.release("never")
    assert views.keys() == frozenset()


@pytest.mark.parametrize("key", ["..", "a/b", ""])
def test_strange_keys_are_refused(views: Views, key: str) -> None:
    with pytest.raises(InvalidInput):
        views.mount(key, ())
    with pytest.raises(InvalidInput):
        views.release(key)
