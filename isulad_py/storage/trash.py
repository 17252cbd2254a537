"""Deletion in two steps: a rename, which is immediate, and the removal of the tree, which may take its time."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import structlog

from isulad_py.host import blocking, trees
from isulad_py.host.failures import translated
from isulad_py.model.errors import EngineError
from isulad_py.ports.tasks import Tasks

log = structlog.get_logger(__name__)

_BATCH: Final = 64


class Trash:
    """One directory, emptied by one thread at a time. What a crash leaves in it is removed after the next start."""

    def __init__(self, directory: str, *, tasks: Tasks) -> None:
        self._directory = directory
        self._tasks = tasks
        self._emptying = False
        self._again = False
        self._stuck: set[str] = set()
        """What could not be removed: tried again after the next start, not for ever now."""

    def take(self, path: str) -> bool:
        """Moves a tree of the same file system in here; False where there was none. Synchronous; then call `empty`."""
        with translated("remove"):
            try:
                Path(path).rename(f"{self._directory}/{secrets.token_hex(12)}")
            except FileNotFoundError:
                return False
        return True

    def empty(self) -> None:
        """Begins to remove, in the background, what is in here. While the daemon stops, the next start does that."""
        self._again = True
        if not self._emptying:
            try:
                self._tasks.start(self._empty(), name="empty the trash")
            except RuntimeError:
                return
            self._emptying = True

    async def _empty(self) -> None:
        try:
            while self._again:
                self._again = False
                while names := await blocking.run(self._names):
                    for name in names:
                        await self._remove(name)
        finally:
            self._emptying = False

    def _names(self) -> list[str]:
        with translated("read"):
            return [path.name for path in Path(self._directory).iterdir() if path.name not in self._stuck][:_BATCH]

    async def _remove(self, name: str) -> None:
        try:
            await blocking.run(trees.remove_tree, f"{self._directory}/{name}")
        except EngineError as error:
            self._stuck.add(name)
            log.warning("cannot remove from the trash", name=name, error=str(error))
