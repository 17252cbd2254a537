"""Slices under a real systemd, which then owns the tree. Needs root and systemd as init."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

import pytest

from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.runtime.cgroup_sampler import CgroupFiles
from isulad_py.runtime.cgroups import CgroupTree
from isulad_py.spec.cgroup_paths import parent_path, place_container

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not Path("/run/systemd/system").is_dir(), reason="systemd is not the init of this machine"),
]


async def test_a_scope_lies_where_we_say_and_its_slice_goes_with_it() -> None:
    facts = read_facts()
    tree = CgroupTree(facts, systemd=True, clock=SystemClock())
    parent = f"isuladtest{secrets.token_hex(4)}-pod1.slice"
    placement = place_container(parent, secrets.token_hex(8), systemd=True)
    scope = placement.path.rpartition("/")[2]
    await tree.ensure(parent)
    child = subprocess.Popen(
        ["systemd-run", "--quiet", "--scope", f"--slice={parent}", f"--unit={scope}", "sh", "-c", "echo up; sleep 300"],
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert Path(tree.directories(placement.path)[0]).is_dir()
        inner, outer = await CgroupFiles(facts).sample([placement.path, parent])
        assert inner is not None
        assert outer is not None
        assert inner.processes == outer.processes
        assert inner.processes
        assert inner.memory_usage_bytes
    finally:
        await tree.remove(parent_path(parent, systemd=True))
        child.wait(30)
        assert child.stdout is not None
        child.stdout.close()
    await tree.remove(parent)
    assert not any(Path(directory).exists() for directory in tree.directories(parent))
    top = parent.partition("-")[0] + ".slice"
    subprocess.run(["systemctl", "stop", top], check=True)
