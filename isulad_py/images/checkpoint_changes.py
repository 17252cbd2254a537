"""What a container has changed in its root file system, as checkpoints have it: a tar archive of what is new, and a
list of what is gone. Synchronous; the container must not run meanwhile.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from isulad_py.host import libc
from isulad_py.host.confined import RESOLVE_IN_ROOT
from isulad_py.host.failures import translated
from isulad_py.host.inherit import OPAQUE
from isulad_py.host.trees import RESOLVE_NO_SYMLINKS
from isulad_py.images.checkpoint_tar import Stopped, TarWriter
from isulad_py.model.errors import FailedPrecondition
from isulad_py.ports.storage import Changes

_UNTOLD: Final = ("trusted.overlay.redirect", "trusted.overlay.metacopy")
"""Of a directory that was renamed, or a file whose data stayed in the image: its contents are somewhere else."""
_READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write_changes(changes: Changes, archive: str, stopped: Stopped) -> list[str]:
    """Writes the archive and returns the absolute paths of what is gone. FailedPrecondition for what neither can tell.
    Sockets are left out."""
    with translated("keep the changes of the root file system:"):
        fd = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            walk = _Walk(changes, TarWriter(fd, stopped))
            walk.run()
            return walk.deleted
        finally:
            os.close(fd)


class _Walk:
    def __init__(self, changes: Changes, writer: TarWriter) -> None:
        self._changes = changes
        self._writer = writer
        self.deleted: list[str] = []

    def run(self) -> None:
        todo = [""]
        while todo:
            folder = todo.pop()
            path = f"{self._changes.upper}/{folder}" if folder else self._changes.upper
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            for entry in found:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if self._entry(name, entry):
                    todo.append(name)
        self._writer.finish()

    def _entry(self, name: str, entry: os.DirEntry[str]) -> bool:
        """Whether there is more below."""
        state = entry.stat(follow_symlinks=False)
        if _is_whiteout(state):
            self._delete(name)
            return False
        xattrs = set(os.listxattr(entry.path, follow_symlinks=False))
        if xattrs.intersection(_UNTOLD):
            raise FailedPrecondition(f"/{name} was renamed, or changed in its attributes only: no archive can tell")
        self._writer.entry(name, entry.path)
        if not stat.S_ISDIR(state.st_mode):
            return False
        if OPAQUE in xattrs and os.getxattr(entry.path, OPAQUE, follow_symlinks=False) == b"y":
            for hidden in self._hidden(name, entry.path):
                self._delete(hidden)
        return True

    def _delete(self, name: str) -> None:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise FailedPrecondition(f"{name!r} was deleted: a name that is not UTF-8 cannot be told") from error
        self.deleted.append(f"/{name}")

    def _hidden(self, name: str, path: str) -> list[str]:
        """What the layers below have in a directory that was deleted and made anew."""
        kept, gone = _names(path), set[str]()
        for layer in self._changes.lower:
            try:
                root = os.open(layer, _READ_DIRECTORY)
            except FileNotFoundError:
                continue
            try:
                fd = libc.openat2(root, name, _READ_DIRECTORY, resolve=RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                break  # a link there: what lies further below is another directory
            finally:
                os.close(root)
            try:
                gone |= _names(fd)
            finally:
                os.close(fd)
        return [f"{name}/{each}" for each in sorted(gone - kept)]


def _names(directory: str | int) -> set[str]:
    with os.scandir(directory) as entries:
        return {entry.name for entry in entries}


def _is_whiteout(state: os.stat_result) -> bool:
    return stat.S_ISCHR(state.st_mode) and state.st_rdev == 0
