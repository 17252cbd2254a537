"""A host as tests want it."""

from __future__ import annotations

from typing import Any

import msgspec

from isulad_py.model.facts import HostFacts

_HOST = HostFacts(
    kernel="6.1.0",
    machine="x86_64",
    boot_id="6f5b2a1e-0000-4000-8000-000000000001",
    cgroup_version=1,
    cgroup_controllers=frozenset(),
    capabilities=(),
    oom_score_adj=0,
    can_lower_oom_score=True,
    apparmor=False,
    selinux=False,
    seccomp=True,
    hostname="node",
    memory_bytes=8 << 30,
    swap_bytes=0,
)


def host_facts(**facts: Any) -> HostFacts:
    """A plain host but for what is named."""
    return msgspec.structs.replace(_HOST, **facts)
