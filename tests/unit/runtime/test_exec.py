"""Execs with a simulated runtime: commands are plain processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.model.errors import DeadlineExceeded, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.runtime.adapter import OciRuntime
from tests.fakes.oci_programs import SimulatedPrograms, command, launch


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[tuple[OciRuntime, ContainerId]]:
    runtime = SimulatedPrograms(tmp_path).adapter()
    wanted = launch(["sleep", "1000"])
    await runtime.create(wanted)
    await runtime.start(wanted.id, "runc")
    yield runtime, wanted.id
    await runtime.delete(wanted.id, "runc")


async def test_output_and_code(container: tuple[OciRuntime, ContainerId]) -> None:
    runtime, container_id = container
    result = await runtime.exec_sync(command(container_id, ["sh", "-c", "echo out; echo err >&2; exit 3"]))
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert (await runtime.exec_sync(command(container_id, ["sh", "-c", "kill -9 $$"]))).exit_code == 137


async def test_nothing_is_left_in_the_bundle(container: tuple[OciRuntime, ContainerId], tmp_path: Path) -> None:
    runtime, container_id = container
    folder = tmp_path / "state/containers" / container_id
    before = sorted(path.name for path in folder.iterdir())
    await runtime.exec_sync(command(container_id, ["true"]))
    assert sorted(path.name for path in folder.iterdir()) == before


async def test_a_program_that_is_missing(container: tuple[OciRuntime, ContainerId]) -> None:
    runtime, container_id = container
    with pytest.raises(InvalidInput, match=r"exec missing: exec failed: .*not found"):
        await runtime.exec_sync(command(container_id, ["missing"]))


async def test_past_its_time_command_and_children_are_ended(container: tuple[OciRuntime, ContainerId]) -> None:
    runtime, container_id = container
    mark = f"98{container_id[:4]}"
    seconds = str(int(mark, 16))
    script = f"sleep {seconds} & setsid sleep {seconds} & wait"
    with pytest.raises(DeadlineExceeded, match=r"exec sh: no end within 0\.2 s; killed"):
        await runtime.exec_sync(command(container_id, ["sh", "-c", script], seconds=0.2))
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_cancelled_it_is_ended(container: tuple[OciRuntime, ContainerId]) -> None:
    runtime, container_id = container
    seconds = str(int(f"97{container_id[:4]}", 16))
    execing = asyncio.ensure_future(runtime.exec_sync(command(container_id, ["sleep", seconds])))
    while not pidfd.find_by_arguments(["sleep", seconds]):
        await asyncio.wait([execing], timeout=0.005)
    execing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await execing
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_an_unknown_container(container: tuple[OciRuntime, ContainerId]) -> None:
    runtime, _ = container
    with pytest.raises(NotFound):
        await runtime.exec_sync(command(ContainerId(new_id()), ["true"]))
