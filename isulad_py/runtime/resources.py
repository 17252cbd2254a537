"""Limits as `update --resources -` takes them (OCI runtime spec, config-linux.md, Control groups). Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from isulad_py.model.resources import Resources
from isulad_py.spec.resources import no_swap


def update_document(resources: Resources, *, memory_and_swap_now: int | None = None, v2: bool = False) -> bytes:
    """Only what is specified: the runtime leaves the rest as it is.

    `memory_and_swap_now` is the present limit of a v1 cgroup: the kernel refuses a memory limit above it, so that it is
    raised along where no other is asked for.
    """
    memory: dict[str, Any] = {}
    if resources.memory_limit_bytes:
        memory["limit"] = resources.memory_limit_bytes
    if resources.memory_swap_limit_bytes:
        memory["swap"] = resources.memory_swap_limit_bytes
    elif memory_and_swap_now is not None and resources.memory_limit_bytes > memory_and_swap_now:
        memory["swap"] = resources.memory_limit_bytes
    cpu = {
        "shares": resources.cpu_shares,
        "quota": resources.cpu_quota_us,
        "period": resources.cpu_period_us,
        "cpus": resources.cpuset_cpus,
        "mems": resources.cpuset_mems,
    }
    document = {
        "memory": memory,
        "cpu": {name: value for name, value in cpu.items() if value},
        "hugepageLimits": [
            {"pageSize": limit.page_size, "limit": limit.limit_bytes} for limit in resources.hugepage_limits
        ],
        "unified": (no_swap(resources.memory_limit_bytes, memory.get("swap", 0)) if v2 else {}) | resources.unified,
    }
    return msgspec.json.encode({name: value for name, value in document.items() if value})
