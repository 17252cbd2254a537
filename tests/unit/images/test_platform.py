"""Which platform a machine runs."""

from __future__ import annotations

import pytest

from isulad_py.images.platform import Platform, architecture_of, choose


def platform(text: str) -> Platform:
    os, architecture, variant = [*text.split("/"), ""][:3]
    return Platform(os=os, architecture=architecture, variant=variant)


@pytest.mark.parametrize(
    ("machine", "offers", "chosen"),
    [
        ("x86_64", ["linux/arm64", "linux/amd64"], "linux/amd64"),
        ("x86_64", ["linux/amd64/v3", "linux/amd64/v1"], "linux/amd64/v1"),
        ("x86_64", ["linux/amd64/v3"], None),
        ("x86_64", ["windows/amd64", "linux/386"], "linux/386"),
        ("x86_64", ["linux/386", "linux/amd64"], "linux/amd64"),
        ("aarch64", ["linux/arm/v7", "linux/arm64/v8"], "linux/arm64/v8"),
        ("aarch64", ["linux/arm64"], "linux/arm64"),
        ("aarch64", ["linux/arm/v5", "linux/arm/v7"], "linux/arm/v7"),
        ("armv7l", ["linux/arm/v5", "linux/arm/v6"], "linux/arm/v6"),
        ("armv7l", ["linux/arm64", "linux/arm"], "linux/arm"),
        ("armv6l", ["linux/arm/v7"], None),
        ("riscv64", ["linux/amd64", "linux/riscv64"], "linux/riscv64"),
        ("loongarch64", ["linux/loong64"], "linux/loong64"),
        ("s390x", ["linux/s390x"], "linux/s390x"),
        ("aarch64", ["linux/arm64/8"], "linux/arm64/8"),
        ("armv7l", ["linux/arm/6"], "linux/arm/6"),
        ("armv7l", ["linux/armhf"], "linux/armhf"),
        ("armv6l", ["linux/armel"], "linux/armel"),
        ("aarch64", ["Linux/AArch64/V8"], "Linux/AArch64/V8"),
        ("x86_64", ["linux/x86_64"], "linux/x86_64"),
        ("x86_64", ["unknown/unknown"], None),
        ("x86_64", [], None),
    ],
)
def test_choice(machine: str, offers: list[str], chosen: str | None) -> None:
    index = choose([None, *map(platform, offers)], machine)
    assert (offers[index - 1] if index is not None else None) == chosen


def test_of_equals_the_first_counts() -> None:
    assert choose([platform("linux/amd64"), platform("linux/amd64")], "x86_64") == 0


def test_names() -> None:
    assert str(platform("linux/arm/v7")) == "linux/arm/v7"
    assert (architecture_of("x86_64"), architecture_of("riscv64")) == ("amd64", "riscv64")
