"""PURE: names in a layer's archive that say what the layers below lose (OCI image spec, layer.md, Whiteouts)."""

from __future__ import annotations

from typing import Final

WHITEOUT: Final = b".wh."
OPAQUE: Final = b".wh..wh..opq"


def is_marker(name: bytes) -> bool:
    """Such an entry is never on disk itself, whatever data it carries."""
    if WHITEOUT not in name:
        return False
    parts = name.rstrip(b"/").split(b"/")
    return parts[-1].startswith(WHITEOUT) or _is_bookkeeping(parts)


def folder_of_opaque(name: bytes) -> bytes | None:
    """The directory of which everything below is hidden, where the marker says that."""
    folder, _, base = name.rstrip(b"/").rpartition(b"/")
    return folder if base == OPAQUE else None


def hidden(name: bytes) -> bytes | None:
    """What the marker hides; its last part may be empty. None for what hides nothing: aufs's own bookkeeping, in old
    images."""
    parts = name.rstrip(b"/").split(b"/")
    if _is_bookkeeping(parts):
        return None
    return b"/".join([*parts[:-1], parts[-1].removeprefix(WHITEOUT)])


def _is_bookkeeping(parts: list[bytes]) -> bool:
    return any(part.startswith(WHITEOUT + WHITEOUT) for part in parts)
