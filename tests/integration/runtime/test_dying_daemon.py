"""A daemon that dies while it creates a container: the next one removes whatever there is, by the id alone (root)."""

from __future__ import annotations

import asyncio
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.clock import SystemClock
from isulad_py.host.facts import read_facts
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.runtime.adapter import OciRuntime, Options
from tests.stand.cgroups import cgroups_named, processes_in, remove_cgroup
from tests.stand.rootfs import make_rootfs

pytestmark = pytest.mark.root

HERE = Path(__file__).parents[3]


def die_in_create(tmp_path: Path, cgroup: str, container_id: str, step: str) -> str:
    """What the dying daemon printed."""
    root = tmp_path / "rootfs"
    if not root.exists():
        make_rootfs(root)
    arguments = [str(tmp_path / "state"), str(root), cgroup, container_id, step]
    command = [sys.executable, "-m", "tests.stand.dying_create", *arguments]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


def new_runtime(tmp_path: Path) -> OciRuntime:
    return OciRuntime(
        handlers={"runc": RuntimeHandler(name="runc")},
        facts=read_facts(),
        clock=SystemClock(),
        options=Options(state=str(tmp_path / "state")),
    )


@pytest.mark.skipif(not Path("/run/systemd/system").is_dir(), reason="systemd is not the init of this machine")
@pytest.mark.parametrize("step", ["60", "150", "300", "500", "800", "1200"])
async def test_nothing_is_left_of_a_scope_wherever_it_dies(tmp_path: Path, step: str) -> None:
    slice_ = f"t{secrets.token_hex(6)}.slice"
    container_id = ContainerId(new_id())
    die_in_create(tmp_path, f"{slice_}:isulad:{container_id}", container_id, step)
    await new_runtime(tmp_path).delete(container_id, "runc")
    for pid, started in pidfd.find_by_arguments([str(tmp_path / "state/containers" / container_id)]).items():
        await pidfd.wait_end(pid, started)
    folder = Path("/sys/fs/cgroup", slice_)
    assert not (folder.exists() and processes_in(folder))
    listing = ["systemctl", "list-units", "--all", "--plain", "--no-legend", f"isulad-{container_id}*"]
    assert subprocess.run(listing, capture_output=True, text=True, check=True, timeout=60).stdout == ""
    subprocess.run(["systemctl", "stop", slice_], check=True, timeout=60)


@pytest.mark.parametrize("step", ["0", "2", "4", "6", "8", "11", "14", "17", "20", "24", "30", "60"])
async def test_nothing_is_left_wherever_it_dies(tmp_path: Path, step: str) -> None:
    parent = f"t{secrets.token_hex(6)}"
    container_id = ContainerId(new_id())
    die_in_create(tmp_path, f"/{parent}/{container_id}", container_id, step)
    runtime = new_runtime(tmp_path)
    assert await runtime.present() <= {container_id}
    await runtime.delete(container_id, "runc")
    assert await runtime.present() == frozenset()
    # A monitor that was just being started when the daemon died ends by itself: its gate is never opened.
    for pid, started in pidfd.find_by_arguments([str(tmp_path / "state/containers" / container_id)]).items():
        await pidfd.wait_end(pid, started)
    assert [path for folder in cgroups_named(parent, depth=1) for path in folder.glob("*/")] == []
    assert all(remove_cgroup(folder) for folder in cgroups_named(parent, depth=1))


async def test_a_monitor_that_was_not_let_go_does_not_start_a_container(tmp_path: Path) -> None:
    parent = f"t{secrets.token_hex(6)}"
    container_id = ContainerId(new_id())
    pid = int(die_in_create(tmp_path, f"/{parent}/{container_id}", container_id, "place"))
    await pidfd.wait_end(pid, pidfd.start_time(pid))
    bundle = str(tmp_path / "state/containers" / container_id)
    assert pidfd.find_by_arguments([bundle]) == {}
    assert not Path(bundle, "monitor.pid").exists()
    assert cgroups_named(parent, depth=1) == []
    await new_runtime(tmp_path).delete(container_id, "runc")


async def test_a_container_that_was_made_lives_on_and_is_taken_over(tmp_path: Path) -> None:
    parent = f"t{secrets.token_hex(6)}"
    container_id = ContainerId(new_id())
    die_in_create(tmp_path, f"/{parent}/{container_id}", container_id, "2000")
    runtime = new_runtime(tmp_path)
    assert await runtime.state(container_id, "runc") == "created"
    await runtime.start(container_id, "runc")
    assert [bool(processes_in(folder)) for folder in cgroups_named(parent, depth=1)]
    await runtime.delete(container_id, "runc")
    assert all(remove_cgroup(folder) for folder in cgroups_named(parent, depth=1))
    await asyncio.sleep(0)
