"""Checkpoints and restores by simulated programs: what they are told, and what is left of those that fail."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.host import pidfd, process
from isulad_py.model.errors import FailedPrecondition, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.checkpoints import CheckpointPlace, Dump
from isulad_py.runtime.adapter import OciRuntime
from tests.fakes.oci_programs import SimulatedPrograms, launch


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[OciRuntime]:
    made = SimulatedPrograms(tmp_path).adapter(criu="/opt/x/criu")
    yield made
    for container_id in await made.present():
        await made.delete(container_id, "runc")


@pytest.fixture
def place(tmp_path: Path) -> CheckpointPlace:
    (tmp_path / "work/checkpoint").mkdir(parents=True)
    return CheckpointPlace(images=str(tmp_path / "work/checkpoint"), work=str(tmp_path / "work"))


async def running(runtime: OciRuntime, *args: str) -> ContainerId:
    asked = launch(args)
    await runtime.create(asked)
    await runtime.start(asked.id, "runc")
    return asked.id


async def test_a_dump_with_the_configured_criu(runtime: OciRuntime, place: CheckpointPlace) -> None:
    container_id = await running(runtime, "sleep", "1000")
    await runtime.checkpoints().dump(Dump(id=container_id, handler="runc", place=place))
    assert Path(place.images, "inventory.img").exists()
    assert Path(place.work, "dump.log").read_text() == f"/opt/x:{process.PATH}"


async def test_a_dump_that_criu_refuses(runtime: OciRuntime, place: CheckpointPlace) -> None:
    container_id = await running(runtime, "sh", "-c", "kill -STOP $$", "tcp")
    with pytest.raises(FailedPrecondition, match=r"criu failed: .*; CRIU: inet: Connected TCP socket"):
        await runtime.checkpoints().dump(Dump(id=container_id, handler="runc", place=place))
    with pytest.raises(NotFound):
        await runtime.checkpoints().dump(Dump(id=ContainerId("unknown"), handler="runc", place=place))


async def until(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0)


async def test_a_dump_that_is_given_up_leaves_no_program(runtime: OciRuntime, place: CheckpointPlace) -> None:
    container_id = await running(runtime, "sh", "-c", "kill -STOP $$", "slow")
    checkpoints = runtime.checkpoints()
    work = asyncio.create_task(checkpoints.dump(Dump(id=container_id, handler="runc", place=place)))
    await until(Path(place.work, "begun"))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await checkpoints.end_dump(place)


async def test_a_dump_of_a_former_daemon_is_ended(runtime: OciRuntime, place: CheckpointPlace) -> None:
    with (
        subprocess.Popen(["sleep", "1000"], cwd=place.work) as criu,
        subprocess.Popen(["sh", "-c", "sleep 1000; :", place.images]) as program,
        subprocess.Popen(["sleep", "1000"], cwd=place.images) as other,
    ):
        former = {each.pid: pidfd.start_time(each.pid) for each in (criu, program)}
        await runtime.checkpoints().end_dump(place)
        assert not any(pidfd.alive(pid, started) for pid, started in former.items())
        assert pidfd.alive(other.pid, pidfd.start_time(other.pid))
        other.kill()


async def test_a_container_is_restored(runtime: OciRuntime, place: CheckpointPlace) -> None:
    Path(place.images, "inventory.img").touch()
    asked = replace(launch(["sleep", "1000"]), restore=place.images)
    processes = await runtime.create(asked)
    assert await runtime.state(asked.id, "runc") == "running"
    assert await runtime.checkpoints().restored(asked.id) == processes
    await runtime.kill(asked.id, "runc", 9)
    assert (await runtime.wait_exit(asked.id, processes)).exit_code == 137


async def test_a_restore_that_criu_refuses_leaves_nothing(runtime: OciRuntime, place: CheckpointPlace) -> None:
    asked = replace(launch(["sleep", "1000"]), restore=place.images)
    with pytest.raises(FailedPrecondition, match=r"criu failed: .*; CRIU: Can't open inventory\.img"):
        await runtime.create(asked)
    assert await runtime.present() == frozenset()
    with pytest.raises(NotFound):
        await runtime.checkpoints().restored(asked.id)


async def test_an_obstacle(runtime: OciRuntime, tmp_path: Path) -> None:
    assert await runtime.checkpoints().obstacle("runc") == "/opt/x/criu is not installed"
    off = SimulatedPrograms(tmp_path).adapter(criu="").checkpoints()
    assert "turned off" in await off.obstacle("runc")
