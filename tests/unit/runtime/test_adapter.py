"""The adapter over simulated programs; the whole port is driven in tests/contract/test_runtime.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
import structlog

from isulad_py.host import pidfd
from isulad_py.model.errors import DeadlineExceeded, FailedPrecondition, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.model.resources import Resources
from tests.fakes.oci_programs import SimulatedPrograms, launch


@pytest.fixture
def programs(tmp_path: Path) -> SimulatedPrograms:
    return SimulatedPrograms(tmp_path)


async def test_a_life(programs: SimulatedPrograms) -> None:
    runtime = programs.adapter()
    wanted = launch(["sh", "-c", "exit 3"])
    processes = await runtime.create(wanted)
    assert pidfd.alive(processes.pid, processes.pid_started)
    assert pidfd.alive(processes.monitor_pid, processes.monitor_started)
    assert await runtime.state(wanted.id, "runc") == "created"
    assert await runtime.present() == {wanted.id}
    assert await runtime.bundle_spec(wanted.id) == wanted.spec
    await runtime.update(wanted.id, "runc", Resources(cpu_shares=7))
    updated = programs.state / "runtime/runc" / wanted.id / "update.json"
    assert json.loads(updated.read_text()) == {"cpu": {"shares": 7}}
    await runtime.start(wanted.id, "runc")
    assert (await runtime.wait_exit(wanted.id, processes)).exit_code == 3
    assert await runtime.state(wanted.id, "runc") == "stopped"
    await runtime.delete(wanted.id, "runc")
    assert await runtime.state(wanted.id, "runc") == ""
    assert await runtime.present() == frozenset()


async def test_another_daemon_takes_over(programs: SimulatedPrograms) -> None:
    wanted = launch(["sleep", "1000"])
    processes = await programs.adapter().create(wanted)
    later = programs.adapter()
    await later.start(wanted.id, "runc")
    with pytest.raises(FailedPrecondition):
        await later.start(wanted.id, "runc")
    waiting = asyncio.ensure_future(later.wait_exit(wanted.id, processes))
    await later.kill(wanted.id, "runc", signal.SIGTERM)
    assert (await waiting).exit_code == 143
    await later.delete(wanted.id, "runc")


async def test_a_started_container_runs_its_own_program(programs: SimulatedPrograms) -> None:
    """One whose first process is held up behind the runtime's `start`."""
    runtime = programs.adapter()
    wanted = launch(["sleep", "1000"])
    processes = await runtime.create(wanted)
    os.kill(processes.pid, signal.SIGSTOP)
    starting = asyncio.ensure_future(runtime.start(wanted.id, "runc"))
    while (programs.state / "runtime/runc" / wanted.id / "exec.fifo").exists():
        await asyncio.sleep(0)
    os.kill(processes.pid, signal.SIGCONT)
    await starting
    assert not pidfd.runs_its_parents_program(processes.pid, processes.pid_started)
    await runtime.delete(wanted.id, "runc")


async def started_without_beginning(programs: SimulatedPrograms) -> list[str]:
    """What is logged by the start of a container whose first process is held up for good."""
    runtime = programs.adapter(program_seconds=0.05)
    wanted = launch(["sleep", "1000"])
    processes = await runtime.create(wanted)
    os.kill(processes.pid, signal.SIGSTOP)
    with structlog.testing.capture_logs() as lines:
        await runtime.start(wanted.id, "runc")
    await runtime.delete(wanted.id, "runc")
    return [line["event"] for line in lines]


async def test_a_program_that_does_not_begin_is_not_waited_for_for_ever(programs: SimulatedPrograms) -> None:
    assert await started_without_beginning(programs) == ["container has not begun its program yet"]


async def test_a_runtime_that_may_be_the_program_is_not_waited_for(programs: SimulatedPrograms) -> None:
    program = programs.folder / "runtime"
    crun = 'case "$*" in *--version*) echo crun version 1.14; exit;; esac\nexec '
    program.write_text(program.read_text().replace("exec ", crun, 1))
    assert await started_without_beginning(programs) == []


async def test_a_create_that_fails_leaves_nothing(programs: SimulatedPrograms) -> None:
    runtime = programs.adapter()
    with pytest.raises(InvalidInput, match=r"create: runc create failed: .*missing"):
        await runtime.create(launch(["missing"]))
    assert await runtime.present() == frozenset()


async def test_a_create_that_hangs_is_ended(programs: SimulatedPrograms, tmp_path: Path) -> None:
    await programs.adapter().versions()
    monitor = tmp_path / "monitor"
    monitor.write_text("#!/bin/sh\nexec sleep 1000\n")
    runtime = programs.adapter(create_seconds=0.3)
    await runtime.features("runc")
    with pytest.raises(DeadlineExceeded, match=r"no container within 0\.3 s"):
        await runtime.create(launch(["sleep", "1000"]))
    assert await runtime.present() == frozenset()


async def test_a_missing_monitor_is_told_and_so_is_one_that_comes_back(
    programs: SimulatedPrograms, tmp_path: Path
) -> None:
    runtime = programs.adapter()
    assert await runtime.monitor_obstacle() == ""
    (tmp_path / "monitor").rename(tmp_path / "elsewhere")
    assert "no such program" in await runtime.monitor_obstacle()
    (tmp_path / "elsewhere").rename(tmp_path / "monitor")
    assert await runtime.monitor_obstacle() == ""


async def test_a_container_without_a_record_is_asked_for(programs: SimulatedPrograms) -> None:
    runtime = programs.adapter()
    wanted = launch(["sleep", "1000"])
    processes = await runtime.create(wanted)
    (programs.state / "containers" / wanted.id / "record.json").unlink()
    assert await runtime.state(wanted.id, "runc") == "running"
    with pytest.raises(NotFound):
        await runtime.pause(wanted.id, "runc")
    await runtime.delete(wanted.id, "runc")
    assert not pidfd.alive(processes.pid, processes.pid_started)
    assert not pidfd.alive(processes.monitor_pid, processes.monitor_started)


async def test_no_log_is_nothing_to_reopen(programs: SimulatedPrograms) -> None:
    runtime = programs.adapter()
    wanted = launch(["sleep", "1000"])
    await runtime.create(wanted)
    await runtime.reopen_log(wanted.id)
    await runtime.delete(wanted.id, "runc")
    with pytest.raises(NotFound):
        await runtime.reopen_log(ContainerId(new_id()))
