"""PURE: which of several platforms this machine runs (OCI image spec, image-index.md; containerd's order)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct


class Platform(Struct, frozen=True, omit_defaults=True):
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
_SAME: Final = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "aarch64": "arm64",
    "i386": "386",
    "i486": "386",
    "i586": "386",
    "i686": "386",
    "armhf": "arm",
    "armel": "arm",
    "loongarch64": "loong64",
    "powerpc64le": "ppc64le",
}
"""Other names that images give an architecture (containerd, platforms, normalizeArch)."""
_OWN_VARIANT: Final = {"armhf": "v7", "armel": "v6"}
_DEFAULT_VARIANT: Final = {"arm64": "v8", "arm": "v7"}


def normalised(platform: Platform) -> Platform:
    """In lower case, with one name for each architecture and variant; amd64's first variant has none."""
    told = platform.architecture.lower()
    architecture = _SAME.get(told, told)
    variant = _OWN_VARIANT.get(told, platform.variant.lower())
    if variant.isdecimal():
        variant = f"v{variant}"
    if (architecture, variant) == ("amd64", "v1"):
        variant = ""
    return Platform(
        os=platform.os.lower(), architecture=architecture, variant=variant or _DEFAULT_VARIANT.get(architecture, "")
    )


def runs_on(platform: Platform, machine: str) -> bool:
    """Whether an image of that platform can run on this machine."""
    return choose([platform], machine) is not None


def choose(platforms: Sequence[Platform | None], machine: str) -> int | None:
    """The index of the best platform for this machine; None where none fits. Of equals the first counts."""
    offers = [normalised(platform) if platform is not None else None for platform in platforms]
    for architecture, variant in _CANDIDATES.get(machine, ((machine, ""),)):
        wanted = Platform("linux", architecture, variant)
        if wanted in offers:
            return offers.index(wanted)
    return None


def architecture_of(machine: str) -> str:
    """This machine's own, as images name it."""
    return _CANDIDATES.get(machine, ((machine, ""),))[0][0]
