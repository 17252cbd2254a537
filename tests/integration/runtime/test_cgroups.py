"""Real cgroups of random names. Needs root and this host's hierarchies."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.runtime.cgroup_sampler import CgroupFiles
from isulad_py.runtime.cgroups import CgroupTree

pytestmark = pytest.mark.root


@pytest.fixture
def tree() -> CgroupTree:
    return CgroupTree(read_facts(), systemd=False, clock=SystemClock())


@pytest.fixture
async def parent(tree: CgroupTree) -> AsyncIterator[str]:
    path = f"/isulad-py-test-{secrets.token_hex(6)}"
    yield path
    await tree.remove(path)


async def test_a_cgroup_takes_processes_is_sampled_and_goes_when_they_have_ended(tree: CgroupTree, parent: str) -> None:
    path = f"{parent}/pod/container"
    await tree.ensure(path)
    sampler = CgroupFiles(read_facts())
    child = subprocess.Popen(["sleep", "60"])
    try:
        for directory in tree.directories(path, all_hierarchies=False):
            Path(directory, "cgroup.procs").write_text(str(child.pid))
        inner, outer, gone = await sampler.sample([path, parent, f"{parent}/other"])
    finally:
        child.kill()
        child.wait()
    assert inner is not None
    assert outer is not None
    assert gone is None
    assert (inner.processes, outer.processes) == (1, 1)
    assert inner.memory_usage_bytes is not None
    assert inner.cpu_usage_ns is not None
    await tree.remove(parent)
    assert not any(Path(directory).exists() for directory in tree.directories(parent))
