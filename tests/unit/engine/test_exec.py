from __future__ import annotations

import json

import pytest

from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound
from isulad_py.ports.runtime import ExecCommand, ExecResult
from tests.unit.engine.node import Node, World


async def test_a_command_runs_as_the_container_does(node: Node, world: World) -> None:
    container_id = await node.run_container(await node.run_pod(), envs=(("A", "1"),))
    seen: list[ExecCommand] = []

    def answer(command: ExecCommand) -> ExecResult:
        seen.append(command)
        return ExecResult(exit_code=3, stdout=b"out", stderr=b"err")

    world.runtime.on_exec = answer
    result = await node.services.exec.exec_sync(container_id[:12], ("id", "-u"), 2.5)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out", b"err")
    [command] = seen
    process = json.loads(command.process)
    assert process["args"] == ["id", "-u"]
    assert "A=1" in process["env"]
    assert (command.id, command.timeout_seconds) == (container_id, 2.5)


async def test_only_running_containers_take_commands(node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.create(pod_id)
    exec_sync = node.services.exec.exec_sync
    with pytest.raises(FailedPrecondition, match="created"):
        await exec_sync(container_id, ("true",))
    await node.services.containers.start(container_id)
    with pytest.raises(InvalidInput, match="cmd"):
        await exec_sync(container_id, ())
    with pytest.raises(NotFound):
        await exec_sync("unknown", ("true",))
    await node.services.containers.stop(container_id, 0)
    with pytest.raises(FailedPrecondition, match="exited"):
        await exec_sync(container_id, ("true",))
