"""Overlay mounts over layers (kernel, filesystems/overlayfs)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from isulad_py.host import mounts
from isulad_py.model.errors import Unsupported
from isulad_py.model.ids import ChainId
from isulad_py.storage.paths import OverlayPaths, link_name

PAGE: Final = 4096
"""mount(2) takes at most one page of options, with its closing NUL."""
_SPECIAL: Final = frozenset(",:\\")
"""What separates options and lower directories."""


class OverlayMount(Struct, frozen=True, kw_only=True):
    """Upper and work are names below the overlay root; without them the mount is read-only."""

    target: str
    layers: tuple[ChainId, ...]
    """Bottom first."""
    upper: str = ""
    work: str = ""
    mount_label: str = ""


def mount_overlay(paths: OverlayPaths, request: OverlayMount) -> None:
    """Synchronous. Raises Unsupported where there are more layers than one mount can name, else as `host.mounts`."""
    if not request.upper and not request.layers:
        mounts.bind(paths.empty, request.target, readonly=True)
        return
    flags = 0 if request.upper else mounts.MS_RDONLY
    # Absolute names tell more in the mount table; short ones are for images of many layers and unlucky roots.
    data = options(request, links=f"{paths.root}/l/", root=paths.root)
    if len(data) < PAGE and not _SPECIAL.intersection(paths.root):
        mounts.mount("overlay", request.target, "overlay", flags, data)
        return
    data = options(request, links="", root="..")
    if len(data) >= PAGE:
        raise Unsupported(f"image: {len(request.layers)} layers are more than one overlay mount can name")
    mounts.mount("overlay", request.target, "overlay", flags, data, cwd=paths.links)


def options(request: OverlayMount, *, links: str, root: str) -> str:
    """`links` goes before the short name of each layer, `root` before the other directories."""
    lower = [links + link_name(chain_id) for chain_id in reversed(request.layers)]
    if not request.upper or not lower:
        lower.append(f"{root}/empty")
    # index=off: layers that were removed and pulled again are other inodes, which an index would refuse (ESTALE).
    parts = [f"lowerdir={':'.join(lower)}", "index=off"]
    if request.upper:
        parts += [f"upperdir={root}/{request.upper}", f"workdir={root}/{request.work}"]
    if request.mount_label:
        parts.append(f'context="{request.mount_label}"')
    return ",".join(parts)
