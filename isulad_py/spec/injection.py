"""Edits of CDI devices, put into the parts of a spec; they win over the image and over the request (CDI, OCI Edits)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isulad_py.model.edits import EditMount, Edits
from isulad_py.spec.schema import Mount


def environment(env: Sequence[str], edits: Edits) -> tuple[str, ...]:
    """A variable that is there already is replaced at its place."""
    merged = {entry.partition("=")[0]: entry for entry in (*env, *edits.env)}
    return tuple(merged.values())


def groups(supplemental: Sequence[int], edits: Edits) -> tuple[int, ...]:
    """Each once; a group of 0 is ignored, as CDI has it."""
    return tuple(dict.fromkeys((*supplemental, *(gid for gid in edits.additional_gids if gid))))


def mounts(edits: Iterable[EditMount]) -> list[Mount]:
    return [
        Mount(destination=mount.destination, type=mount.type, source=mount.source, options=mount.options)
        for mount in edits
    ]
