"""What this host offers, read once at the start. Synchronous: a few small files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from isulad_py.host.failures import translate
from isulad_py.host.mounts import unescape
from isulad_py.model.facts import HostFacts

UNIFIED: Final = "unified"
"""Key of the cgroup2 mount in `HostFacts.cgroup_mounts`."""

CAPABILITIES: Final = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
)
"""By bit number (capabilities(7))."""


def read_facts(*, proc: str = "/proc", sys: str = "/sys") -> HostFacts:
    """The facts about this host and this process. Raises HostFailure where /proc is not usable."""
    proc_path, sys_path = Path(proc), Path(sys)
    try:
        mounts = parse_cgroup_mounts((proc_path / "self/mountinfo").read_bytes())
        status = _fields((proc_path / "self/status").read_text(errors="replace"))
        memory = _fields((proc_path / "meminfo").read_text())
        oom_score_adj = int((proc_path / "self/oom_score_adj").read_text())
        boot_id = (proc_path / "sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise translate("read facts about this host from", error) from error
    version, controllers = _cgroups(mounts)
    names = os.uname()
    capabilities = capability_names(int(status.get("CapBnd", "0"), 16) & int(status.get("CapPrm", "0"), 16))
    effective = capability_names(int(status.get("CapEff", "0"), 16))
    return HostFacts(
        kernel=names.release,
        machine=names.machine,
        boot_id=boot_id,
        cgroup_version=version,
        cgroup_controllers=controllers,
        cgroup_mounts=mounts,
        capabilities=capabilities,
        oom_score_adj=oom_score_adj,
        can_lower_oom_score="CAP_SYS_RESOURCE" in effective,
        apparmor=_first_word(sys_path / "module/apparmor/parameters/enabled") == "Y"
        and (sys_path / "kernel/security/apparmor").is_dir(),
        selinux=(sys_path / "fs/selinux/enforce").exists(),
        seccomp="Seccomp" in status,
        hostname=names.nodename,
        memory_bytes=_kibibytes(memory, "MemTotal"),
        swap_bytes=_kibibytes(memory, "SwapTotal"),
        swap_accounting=_swap_accounting(mounts, version),
        hugepage_sizes=hugepage_sizes(_names(sys_path / "kernel/mm/hugepages")),
        cpus=os.cpu_count() or 1,
    )


def parse_cgroup_mounts(mountinfo: bytes) -> dict[str, str]:
    """Mount point by v1 controller (or `name=…` of a hierarchy without one), and of cgroup2 as `unified`.

    Of several mounts of one hierarchy the first below /sys/fs/cgroup counts.
    """
    found: dict[str, str] = {}
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(b" - ")
        head, tail = before.split(b" "), after.split(b" ")
        if not dash or len(head) < 5 or len(tail) < 3 or tail[0] not in {b"cgroup", b"cgroup2"}:
            continue
        point = unescape(head[4])
        keys = [UNIFIED] if tail[0] == b"cgroup2" else _v1_keys(tail[2].decode(errors="replace").split(","))
        for key in keys:
            if key not in found or (point.startswith("/sys/fs/cgroup") > found[key].startswith("/sys/fs/cgroup")):
                found[key] = point
    return found


_MOUNT_WORDS: Final = frozenset({"rw", "ro", "none", "all", "xattr", "clone_children", "noprefix", "seclabel"})


def _v1_keys(options: Iterable[str]) -> list[str]:
    return [
        option
        for option in options
        if option not in _MOUNT_WORDS and ("=" not in option or option.startswith("name=")) and option
    ]


def _cgroups(mounts: dict[str, str]) -> tuple[int, frozenset[str]]:
    """Version and controllers that containers can be given. Any controller on a v1 hierarchy makes it version 1:
    OCI runtimes then use those only, also where a cgroup2 tree beside them holds a few more."""
    v1 = frozenset(key for key in mounts if key != UNIFIED and not key.startswith("name="))
    if v1 or UNIFIED not in mounts:
        return 1, v1
    words = _first_line(Path(mounts[UNIFIED]) / "cgroup.controllers").split()
    return 2, frozenset(words)


def _swap_accounting(mounts: dict[str, str], version: int) -> bool:
    """Whether swap can be limited. The root of v2 has no limits: a cgroup below it is asked, and where there is none
    yet, the kernel is taken to have it."""
    if version == 1:
        return "memory" in mounts and (Path(mounts["memory"]) / "memory.memsw.limit_in_bytes").exists()
    root = Path(mounts.get(UNIFIED, "/sys/fs/cgroup"))
    limits = [root / name / "memory.max" for name in _names(root)]
    first = next((limit for limit in limits if limit.exists()), None)
    return first is None or first.with_name("memory.swap.max").exists()


def capability_names(mask: int) -> tuple[str, ...]:
    """CAP_ names of the bits; bits that have no name yet are left out, since no runtime could be told of them."""
    return tuple(name for bit, name in enumerate(CAPABILITIES) if mask >> bit & 1)


def hugepage_sizes(directories: Iterable[str]) -> tuple[str, ...]:
    """Sizes as the hugetlb controller names them (2MB, 1GB), smallest first, of the names below
    /sys/kernel/mm/hugepages."""
    sizes: list[int] = []
    for name in directories:
        text = name.removeprefix("hugepages-").removesuffix("kB")
        if text.isdecimal():
            sizes.append(int(text))
    return tuple(_hugepage_name(size) for size in sorted(sizes))


def _hugepage_name(kibibytes: int) -> str:
    if kibibytes >= 1 << 20:
        return f"{kibibytes >> 20}GB"
    return f"{kibibytes >> 10}MB" if kibibytes >= 1 << 10 else f"{kibibytes}KB"


def _fields(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in lines if colon}


def _kibibytes(fields: dict[str, str], name: str) -> int:
    number = fields.get(name, "0").split(" ", 1)[0]
    return int(number) * 1024 if number.isdecimal() else 0


def _first_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").partition("\n")[0]
    except OSError:
        return ""


def _first_word(path: Path) -> str:
    return _first_line(path).strip()


def _names(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.iterdir()]
    except OSError:
        return []


def in_user_namespace() -> bool:
    """Whether this process is not of the one that owns the host (user_namespaces(7))."""
    try:
        return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    except OSError:
        return False  # a kernel that has none
