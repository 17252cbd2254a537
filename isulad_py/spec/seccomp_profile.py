"""The form of seccomp profiles.

What OCI has (config-linux.md, Seccomp), and docker's additions to it, by which one file serves several architectures
and capability sets. Both are read; OCI's is written.
"""

from __future__ import annotations

from msgspec import Struct, field


class Argument(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    index: int
    value: int
    op: str
    value_two: int = 0


class Condition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """All of what is given, for `includes`; any of it, for `excludes`."""

    caps: tuple[str, ...] = ()
    arches: tuple[str, ...] = ()
    """As Go names them: amd64, arm64."""
    min_kernel: str = ""


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    action: str
    names: tuple[str, ...] = ()
    name: str = ""
    """Docker's older form, of one call."""
    errno_ret: int | None = None
    args: tuple[Argument, ...] | None = None
    includes: Condition = Condition()
    excludes: Condition = Condition()


class ArchMapping(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    architecture: str
    sub_architectures: tuple[str, ...] | None = None


class Profile(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default_action: str
    default_errno_ret: int | None = None
    architectures: tuple[str, ...] | None = None
    arch_map: tuple[ArchMapping, ...] | None = None
    flags: tuple[str, ...] | None = None
    listener_path: str = ""
    listener_metadata: str = ""
    syscalls: tuple[Rule, ...] | None = None


class Syscall(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One rule as OCI has it."""

    names: tuple[str, ...]
    action: str
    errno_ret: int | None = None
    args: tuple[Argument, ...] = ()


class Seccomp(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`linux.seccomp` of the runtime specification."""

    default_action: str
    default_errno_ret: int | None = None
    architectures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    listener_path: str = ""
    listener_metadata: str = ""
    syscalls: tuple[Syscall, ...] = field(default_factory=tuple)
