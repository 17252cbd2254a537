"""Volumes that an image declares: a directory for each beside the container's writable layer, with what the image holds
there. Synchronous."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from isulad_py.host import files, tree_copies
from isulad_py.host.failures import translated
from isulad_py.host.trees import remove_tree

MAX_ENTRIES: Final = 500_000
MAX_BYTES: Final = 32 << 30
"""Of all volumes of one container: they may show the same directories of the image again and again."""


def directories(folder: str, paths: tuple[str, ...]) -> dict[str, str]:
    """Where the volumes of a container lie, by their paths in it."""
    return {path: f"{folder}/volumes/{number}" for number, path in enumerate(paths)}


def fill(folder: str, root: str, wanted: Mapping[str, str], include: Callable[[str], None]) -> None:
    """Makes them anew, whatever was there; `include` is told where, before anything is written.

    Raises NotFound or FailedPrecondition where `root` has no such directory, ResourceExhausted where there is too much
    to copy.
    """
    remove_tree(f"{folder}/volumes")
    allowance = tree_copies.Allowance(entries=MAX_ENTRIES, used_bytes=MAX_BYTES)
    with translated("make a volume:"):
        files.ensure_dir(f"{folder}/volumes", 0o711)
        include(f"{folder}/volumes")
        for path, directory in wanted.items():
            files.ensure_dir(directory, 0o755)
            tree_copies.copy_contents(root, path, directory, allowance)
