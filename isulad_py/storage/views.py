"""Layers mounted read-only at a path of their own: image volumes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from isulad_py.host import files, mounts
from isulad_py.host.failures import translated
from isulad_py.model.errors import AlreadyExists, EngineError
from isulad_py.model.ids import ChainId
from isulad_py.storage.loans import read_note, write_note
from isulad_py.storage.overlay import OverlayMount, mapped_path, mount_overlay
from isulad_py.storage.paths import OverlayPaths
from isulad_py.storage.trash import Trash


class Views:
    """Synchronous. `<views>/<key>/{root, layers.json}`: the second tells, also to the next daemon, what is shown."""

    def __init__(self, paths: OverlayPaths, trash: Trash) -> None:
        self._paths = paths
        self._trash = trash

    def mount(self, key: str, layers: tuple[ChainId, ...], userns_path: str = "") -> str:
        """The mountpoint. Idempotent for the same layers; AlreadyExists where the key shows others."""
        folder = self._paths.view(key)
        root = f"{folder}/root"
        shown = read_note(folder)
        if shown is not None and shown != layers:
            raise AlreadyExists(f"view {key} shows other layers")
        if shown is not None and mounts.is_mountpoint(root):
            return root
        try:
            files.ensure_dir(folder, 0o700)
            files.ensure_dir(root, 0o755)
            mount_overlay(self._paths, OverlayMount(target=root, layers=layers, userns_path=userns_path, folder=folder))
            write_note(folder, layers)
        except BaseException:
            with contextlib.suppress(EngineError):  # the first error tells; `release` tries again
                self.release(key)
            raise
        return root

    def release(self, key: str) -> None:
        """Idempotent."""
        folder = self._paths.view(key)
        mounts.unmount(f"{folder}/root")
        mounts.unmount(mapped_path(folder))
        self._trash.take(folder)

    def keys(self) -> frozenset[str]:
        with translated("read"):
            return frozenset(path.name for path in Path(self._paths.views).iterdir())

    def shown(self) -> dict[str, tuple[ChainId, ...] | None]:
        """The layers under each view; None where something is mounted and nothing tells what."""
        found: dict[str, tuple[ChainId, ...] | None] = {}
        for key in self.keys():
            folder = self._paths.view(key)
            layers = read_note(folder)
            if layers is not None or mounts.is_mountpoint(f"{folder}/root"):
                found[key] = layers
        return found
