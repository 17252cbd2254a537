"""PURE: which of several platforms this machine runs (OCI image spec, image-index.md; containerd's order)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct


class Platform(Struct, kw_only=True, omit_defaults=True):
    """As an index states it."""

    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


_ARM: Final = (("arm", "v7"), ("arm", "v6"), ("arm", "v5"))
_CANDIDATES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "x86_64": (("amd64", ""), ("386", "")),
    "aarch64": (("arm64", "v8"), ("arm", "v8"), *_ARM),
    "armv8l": (("arm", "v8"), *_ARM),
    "armv7l": _ARM,
    "armv6l": _ARM[1:],
    "armv5l": _ARM[2:],
    "i686": (("386", ""),),
    "i386": (("386", ""),),
    "loongarch64": (("loong64", ""),),
    "mips64": (("mips64le", ""),),
}
"""Best first, by uname's machine; what is not here is called the same in both worlds (riscv64, ppc64le, s390x)."""
_SAME_VARIANT: Final = {("amd64", "v1"): "", ("arm64", ""): "v8", ("arm", ""): "v7", ("arm", "7"): "v7"}


def choose(platforms: Sequence[Platform | None], machine: str) -> int | None:
    """The index of the best platform for this machine; None where none fits. Of equals the first counts."""
    for architecture, variant in _CANDIDATES.get(machine, ((machine, ""),)):
        for index, platform in enumerate(platforms):
            if platform is None or platform.os != "linux" or platform.architecture != architecture:
                continue
            found = platform.variant
            if _SAME_VARIANT.get((architecture, found), found) == variant:
                return index
    return None


def architecture_of(machine: str) -> str:
    """This machine's own, as images name it."""
    return _CANDIDATES.get(machine, ((machine, ""),))[0][0]
