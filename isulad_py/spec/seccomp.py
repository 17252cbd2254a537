"""Which seccomp filter a container gets: profiles resolved against its capabilities, the machine and the kernel."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.security import ProfileKind, SecurityProfile
from isulad_py.spec import seccomp_default
from isulad_py.spec.seccomp_profile import Condition, Profile, Rule, Seccomp, Syscall

FIELD: Final = "config.linux.security_context.seccomp"

MACHINES: Final = {
    "x86_64": ("amd64", "SCMP_ARCH_X86_64"),
    "aarch64": ("arm64", "SCMP_ARCH_AARCH64"),
    "armv7l": ("arm", "SCMP_ARCH_ARM"),
    "ppc64le": ("ppc64le", "SCMP_ARCH_PPC64LE"),
    "s390x": ("s390x", "SCMP_ARCH_S390X"),
    "riscv64": ("riscv64", "SCMP_ARCH_RISCV64"),
    "loongarch64": ("loong64", "SCMP_ARCH_LOONGARCH64"),
}
"""uname's name of a machine: the one that profiles use in conditions (Go's), and libseccomp's."""

_ACTIONS: Final = "KILL KILL_PROCESS KILL_THREAD TRAP ERRNO TRACE ALLOW LOG NOTIFY"
_OPERATORS: Final = "NE LT LE EQ GE GT MASKED_EQ"
ACTIONS: Final = frozenset("SCMP_ACT_" + name for name in _ACTIONS.split())
OPERATORS: Final = frozenset("SCMP_CMP_" + name for name in _OPERATORS.split())
_ARCHITECTURES: Final = (
    "X86 X86_64 X32 ARM AARCH64 MIPS MIPS64 MIPS64N32 MIPSEL MIPSEL64 MIPSEL64N32 PPC PPC64 PPC64LE S390 S390X PARISC "
    "PARISC64 RISCV64 LOONGARCH64 M68K SH SHEB"
)
_FLAGS: Final = "TSYNC LOG SPEC_ALLOW WAIT_KILLABLE_RECV"
ARCHITECTURES: Final = frozenset("SCMP_ARCH_" + name for name in _ARCHITECTURES.split())
FLAGS: Final = frozenset("SECCOMP_FILTER_FLAG_" + name for name in _FLAGS.split())
"""Of runtime-spec, config-linux.md, Seccomp."""
ARGUMENTS: Final = 6


def filter_for(
    asked: SecurityProfile | None,
    *,
    privileged: bool,
    capabilities: Iterable[str],
    host: HostFacts,
    localhost: bytes | None = None,
    default: bytes | None = None,
) -> Raw | UnsetType:
    """OCI `linux.seccomp`, or nothing for an unconfined container: a privileged one, and one for which no profile is
    named (critest: "nil profile, which is unconfined"; a kubelet always names one)."""
    if privileged or asked is None or asked.kind is ProfileKind.UNCONFINED:
        return UNSET
    if not host.seccomp:
        raise Unsupported(f"{FIELD}: this kernel has no seccomp")
    names = frozenset(capabilities)
    if asked.kind is ProfileKind.LOCALHOST:
        if localhost is None:
            raise InvalidInput(f"{FIELD}.localhost_ref: no such profile")
        return _resolve_bytes(localhost, names, host.machine, host.kernel)
    return _resolved(default, names, host.machine, host.kernel)


@functools.lru_cache(maxsize=64)
def _resolved(data: bytes | None, capabilities: frozenset[str], machine: str, kernel: str) -> Raw:
    """Cached, because the nodes of a cluster run thousands of containers with a handful of capability sets."""
    return _resolve_bytes(data, capabilities, machine, kernel)


def _resolve_bytes(data: bytes | None, capabilities: frozenset[str], machine: str, kernel: str) -> Raw:
    profile = seccomp_default.PROFILE if data is None else parse(data)
    return Raw(msgspec.json.encode(resolve(profile, capabilities, machine, kernel)))


def parse(data: bytes) -> Profile:
    """Raises InvalidInput naming what is wrong."""
    try:
        profile = msgspec.json.decode(data, type=Profile)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{FIELD}: profile: {error}") from error
    _known(profile.default_action, ACTIONS, "defaultAction")
    for index, rule in enumerate(profile.syscalls or ()):
        where = f"syscalls[{index}]"
        _known(rule.action, ACTIONS, f"{where}.action")
        if not (rule.names or rule.name):
            raise InvalidInput(f"{FIELD}: profile: {where}.names: must not be empty")
        for argument in rule.args or ():
            _known(argument.op, OPERATORS, f"{where}.args.op")
            if not 0 <= argument.index < ARGUMENTS:
                raise InvalidInput(f"{FIELD}: profile: {where}.args.index: {argument.index} is not within 0 to 5")
    for index, architecture in enumerate(profile.architectures or ()):
        _known(architecture, ARCHITECTURES, f"architectures[{index}]")
    for index, flag in enumerate(profile.flags or ()):
        _known(flag, FLAGS, f"flags[{index}]")
    if profile.architectures and profile.arch_map:
        raise InvalidInput(f"{FIELD}: profile: architectures and archMap are both given")
    return profile


def _known(value: str, allowed: frozenset[str], where: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"{FIELD}: profile: {where}: unknown value {value!r}")


def resolve(profile: Profile, capabilities: frozenset[str], machine: str, kernel: str) -> Seccomp:
    """The rules that hold for this machine, kernel and set of capabilities."""
    arch = MACHINES.get(machine, (machine, ""))[0]
    rules: list[Syscall] = []
    for rule in profile.syscalls or ():
        if _applies(rule, capabilities, arch, kernel):
            names = rule.names or (rule.name,)
            rules.append(Syscall(names=names, action=rule.action, errno_ret=rule.errno_ret, args=rule.args or ()))
    return Seccomp(
        default_action=profile.default_action,
        default_errno_ret=profile.default_errno_ret,
        architectures=_architectures(profile, machine),
        flags=profile.flags or (),
        listener_path=profile.listener_path,
        listener_metadata=profile.listener_metadata,
        syscalls=tuple(rules),
    )


def _applies(rule: Rule, capabilities: frozenset[str], arch: str, kernel: str) -> bool:
    wanted, unwanted = rule.includes, rule.excludes
    if wanted.arches and arch not in wanted.arches:
        return False
    if not capabilities.issuperset(wanted.caps):
        return False
    if wanted.min_kernel and not _at_least(kernel, wanted.min_kernel):
        return False
    return not _excluded(unwanted, capabilities, arch, kernel)


def _excluded(unwanted: Condition, capabilities: frozenset[str], arch: str, kernel: str) -> bool:
    return bool(
        arch in unwanted.arches
        or not capabilities.isdisjoint(unwanted.caps)
        or (unwanted.min_kernel and _at_least(kernel, unwanted.min_kernel))
    )


def _at_least(kernel: str, wanted: str) -> bool:
    return _version(kernel) >= _version(wanted)


def _version(text: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise InvalidInput(f"{FIELD}: profile: {text!r} is no kernel version")
    return int(found[1]), int(found[2])


def _architectures(profile: Profile, machine: str) -> tuple[str, ...]:
    """None is OCI's "only the native one"."""
    if profile.architectures:
        return profile.architectures
    native = MACHINES.get(machine, ("", ""))[1]
    for mapping in profile.arch_map or ():
        if mapping.architecture == native:
            return (native, *(mapping.sub_architectures or ()))
    return ()
