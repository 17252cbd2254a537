"""CRI's resource limits as OCI's (config-linux.md, Control groups), checked against what this host's cgroups can do."""

from __future__ import annotations

import re
from typing import Final

from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.resources import Resources
from isulad_py.spec import checks
from isulad_py.spec.schema import Cpu, DeviceRule, HugepageLimit, LinuxResources, Memory, Pids

FIELD: Final = "config.linux.resources"
UNLIMITED: Final = -1
CPU_LIST: Final = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
"""cpuset(7), list format. No kernel counts to a hundred thousand processors."""
UNIFIED_FILE: Final = re.compile(r"[a-z_]+\.[A-Za-z0-9_.]+")
SHORTEST_CPU_US: Final = 1000
"""The kernel refuses a shorter quota or period (sched-bwc)."""
FEWEST_SHARES: Final = 2
MOST_SHARES: Final = 262144
LONGEST_PERIOD_US: Final = 1_000_000


def linux_resources(
    resources: Resources,
    host: HostFacts,
    *,
    devices: tuple[DeviceRule, ...] = (),
    pids_limit: int = 0,
    field: str = FIELD,
) -> LinuxResources:
    """Raises InvalidInput or Unsupported naming the CRI field, which starts with `field`. Zero and empty are "not
    specified" and left out; with a memory limit alone, swap is given none beyond it, as containerd does."""
    memory = _memory(resources, host, field)
    without_swap = (
        no_swap(resources.memory_limit_bytes, memory.swap or 0) if memory and host.cgroup_version == 2 else {}
    )
    return LinuxResources(
        devices=devices,
        memory=memory,
        cpu=_cpu(resources, field),
        pids=Pids(limit=pids_limit) if pids_limit > 0 else None,
        hugepage_limits=_hugepages(resources, host, field),
        unified=without_swap | _unified(resources, host, field),
    )


def no_swap(limit: int, limit_and_swap: int) -> dict[str, str]:
    """What `unified` of cgroup v2 needs beside a memory limit that leaves no swap: runc (1.1) writes the file, but does
    not tell systemd of a limit of 0, which takes the 0 back at its next daemon-reload."""
    return {"memory.swap.max": "0"} if 0 < limit == limit_and_swap else {}


def _memory(resources: Resources, host: HostFacts, field: str) -> Memory | None:
    limit, swap = resources.memory_limit_bytes, resources.memory_swap_limit_bytes
    _at_least_unlimited(limit, f"{field}.memory_limit_in_bytes")
    _at_least_unlimited(swap, f"{field}.memory_swap_limit_in_bytes")
    if swap > 0 and (limit == UNLIMITED or limit > swap):
        raise InvalidInput(f"{field}.memory_swap_limit_in_bytes: {swap} is below the memory limit of {limit}")
    if swap > 0 and limit == 0:
        raise InvalidInput(f"{field}.memory_swap_limit_in_bytes: needs memory_limit_in_bytes")
    if not limit and not swap:
        return None
    if not host.swap_accounting:
        # The kubelet sends swap equal to memory wherever it runs: no swap at all is what such a host can keep.
        return Memory(limit=limit) if limit else None
    return Memory(limit=limit or None, swap=swap or limit)


def _at_least_unlimited(value: int, field: str) -> None:
    if value < UNLIMITED:
        raise InvalidInput(f"{field}: must not be negative, but for -1, not {value}")


def _cpu(resources: Resources, field: str) -> Cpu | None:
    shares, quota, period = resources.cpu_shares, resources.cpu_quota_us, resources.cpu_period_us
    if shares and not FEWEST_SHARES <= shares <= MOST_SHARES:
        raise InvalidInput(f"{field}.cpu_shares: {shares} is not within {FEWEST_SHARES} to {MOST_SHARES}")
    checks.not_negative(period, f"{field}.cpu_period")
    if period and not SHORTEST_CPU_US <= period <= LONGEST_PERIOD_US:
        raise InvalidInput(f"{field}.cpu_period: {period} is not within 1000 to 1000000 microseconds")
    if quota not in {UNLIMITED, 0} and quota < SHORTEST_CPU_US:
        raise InvalidInput(f"{field}.cpu_quota: {quota} is neither -1 nor at least 1000 microseconds")
    for name, value in (("cpuset_cpus", resources.cpuset_cpus), ("cpuset_mems", resources.cpuset_mems)):
        if value and not _is_list(value):
            raise InvalidInput(f"{field}.{name}: not a list like 0-3,7: {value!r}")
    cpu = Cpu(
        shares=shares or None,
        quota=quota or None,
        period=period or None,
        cpus=resources.cpuset_cpus,
        mems=resources.cpuset_mems,
    )
    return None if cpu == Cpu() else cpu


def _is_list(value: str) -> bool:
    if not CPU_LIST.fullmatch(value):
        return False
    ranges = (part.split("-") for part in value.split(","))
    return all(int(ends[0]) <= int(ends[-1]) for ends in ranges)


def _hugepages(resources: Resources, host: HostFacts, field: str) -> tuple[HugepageLimit, ...]:
    """A kubelet sends a limit of 0 for every page size of the host, whether or not there is a cgroup to hold it to."""
    limits: dict[str, int] = {}
    for index, asked in enumerate(resources.hugepage_limits):
        at = f"{field}.hugepage_limits[{index}]"
        checks.not_negative(asked.limit_bytes, f"{at}.limit")
        if _can_limit_hugepages(host) and asked.page_size in host.hugepage_sizes:
            limits[asked.page_size] = asked.limit_bytes
        elif asked.limit_bytes:
            raise Unsupported(f"{at}: this host's cgroups do not limit pages of {asked.page_size!r}")
    return tuple(HugepageLimit(page_size=size, limit=limit) for size, limit in limits.items())


def _can_limit_hugepages(host: HostFacts) -> bool:
    """On a hybrid host hugetlb may lie in the v2 tree, where a runtime that uses v1 does not go."""
    return "hugetlb" in (host.cgroup_controllers if host.cgroup_version == 2 else host.cgroup_mounts)


def _unified(resources: Resources, host: HostFacts, field: str) -> dict[str, str]:
    if not resources.unified:
        return {}
    if host.cgroup_version != 2:
        raise InvalidInput(f"{field}.unified: this host has cgroup v1")
    for name, value in resources.unified.items():
        if not UNIFIED_FILE.fullmatch(name):
            raise InvalidInput(f"{field}.unified: {name!r} is no cgroup file")
        controller = name.partition(".")[0]
        if controller != "cgroup" and controller not in host.cgroup_controllers:
            raise InvalidInput(f"{field}.unified: {name!r}: this host's cgroups have no controller {controller!r}")
        checks.text(value, f"{field}.unified[{name}]")
    return resources.unified
