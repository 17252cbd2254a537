"""Layers mounted read-only at a path of their own: image volumes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from isulad_py.host import files, mounts
from isulad_py.host.failures import translated
from isulad_py.model.errors import AlreadyExists, EngineError
from isulad_py.model.ids import ChainId
from isulad_py.storage.overlay import OverlayMount, mount_overlay
from isulad_py.storage.paths import OverlayPaths
from isulad_py.storage.trash import Trash

_LIMIT: Final = 1024 * 1024


class Views:
    """Synchronous. `<views>/<key>/{root, layers.json}`: the second tells, also to the next daemon, what is shown."""

    def __init__(self, paths: OverlayPaths, trash: Trash) -> None:
        self._paths = paths
        self._trash = trash

    def mount(self, key: str, layers: tuple[ChainId, ...]) -> str:
        """The mountpoint. Idempotent for the same layers; AlreadyExists where the key shows others."""
        folder = self._paths.view(key)
        root, note = f"{folder}/root", f"{folder}/layers.json"
        shown = _read(note)
        if shown is not None and shown != layers:
            raise AlreadyExists(f"view {key} shows other layers")
        if shown is not None and mounts.is_mountpoint(root):
            return root
        try:
            files.ensure_dir(folder, 0o700)
            files.ensure_dir(root, 0o755)
            mount_overlay(self._paths, OverlayMount(target=root, layers=layers))
            files.write_atomic(note, msgspec.json.encode(layers))
        except BaseException:
            with contextlib.suppress(EngineError):  # the first error tells; `release` tries again
                self.release(key)
            raise
        return root

    def release(self, key: str) -> None:
        """Idempotent."""
        folder = self._paths.view(key)
        mounts.unmount(f"{folder}/root")
        self._trash.take(folder)

    def keys(self) -> frozenset[str]:
        with translated("read"):
            return frozenset(path.name for path in Path(self._paths.views).iterdir())


def _read(note: str) -> tuple[ChainId, ...] | None:
    try:
        return tuple(msgspec.json.decode(files.read_limited(note, _LIMIT), type=list[ChainId]))
    except (EngineError, msgspec.DecodeError):
        return None  # half-made: a view is made anew from what the caller says
