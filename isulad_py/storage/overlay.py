"""Overlay mounts over layers (kernel, filesystems/overlayfs)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from isulad_py.host import files, inherit, mounts
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
    userns_path: str = ""
    """Shows the layers with the owners that this user namespace gives them."""
    folder: str = ""
    """Two levels below the overlay root, with room for a passing mount: only where owners are mapped."""


class Places(Struct, frozen=True):
    """What names in the options begin with: layers, other lower directories, upper ones."""

    links: str
    lower: str
    upper: str


def mount_overlay(paths: OverlayPaths, request: OverlayMount) -> None:
    """Synchronous. Raises Unsupported where there are more layers than one mount can name, else as `host.mounts`."""
    request = replace(request, layers=_shown(paths, request.layers))
    if not request.userns_path:
        if request.upper or request.layers:
            _mount(paths, request, Places(f"{paths.root}/l/", paths.root, paths.root), Places("", "..", ".."))
        else:
            mounts.bind(paths.empty, request.target, readonly=True)
        return
    # All layers lie in one tree: one mapped mount shows them all, and only until the overlay has its own of each.
    mapped = mapped_path(request.folder)
    files.ensure_dir(mapped, 0o700)
    with mounts.mapped(paths.root, mapped, request.userns_path):
        if not request.upper and not request.layers:
            mounts.bind(f"{mapped}/empty", request.target, readonly=True)
            return
        _mount(paths, request, Places(f"{mapped}/l/", mapped, paths.root), Places("", "..", "../../../.."))


def mapped_path(folder: str) -> str:
    """Where the layers are shown with other owners while something in `folder` is mounted: a crash leaves it."""
    return f"{folder}/mapped"


def _mount(paths: OverlayPaths, request: OverlayMount, places: Places, short: Places) -> None:
    flags = 0 if request.upper else mounts.MS_RDONLY
    # Absolute names tell more in the mount table; short ones are for images of many layers and unlucky roots.
    data = options(request, places)
    if len(data) < PAGE and not _SPECIAL.intersection(paths.root):
        mounts.mount("overlay", request.target, "overlay", flags, data)
        return
    data = options(request, short)
    if len(data) >= PAGE:
        raise Unsupported(f"image: {len(request.layers)} layers are more than one overlay mount can name")
    mounts.mount("overlay", request.target, "overlay", flags, data, cwd=places.links)


def _shown(paths: OverlayPaths, layers: tuple[ChainId, ...]) -> tuple[ChainId, ...]:
    """From the topmost layer up that hides all others: overlay overlooks that mark on the root of a layer."""
    for depth in range(len(layers) - 1, 0, -1):
        if inherit.is_opaque(paths.diff(layers[depth])):
            return layers[depth:]
    return layers


def options(request: OverlayMount, places: Places) -> str:
    lower = [places.links + link_name(chain_id) for chain_id in reversed(request.layers)]
    if not request.upper or not lower:
        lower.append(f"{places.lower}/empty")
    # index=off: layers that were removed and pulled again are other inodes, which an index would refuse (ESTALE).
    parts = [f"lowerdir={':'.join(lower)}", "index=off"]
    if request.upper:
        parts += [f"upperdir={places.upper}/{request.upper}", f"workdir={places.upper}/{request.work}"]
    if request.mount_label:
        parts.append(f'context="{request.mount_label}"')
    return ",".join(parts)
