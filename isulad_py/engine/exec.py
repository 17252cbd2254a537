"""Commands in running containers."""

from __future__ import annotations

from isulad_py.engine.registry import Registry
from isulad_py.engine.specs import Specs
from isulad_py.model.container import ContainerRecord
from isulad_py.model.errors import FailedPrecondition, InvalidInput
from isulad_py.model.lifecycle import can_exec
from isulad_py.ports.runtime import ContainerRuntime, ExecCommand, ExecResult


class Exec:
    def __init__(self, *, registry: Registry, runtime: ContainerRuntime, specs: Specs) -> None:
        self._registry = registry
        self._runtime = runtime
        self._specs = specs

    async def exec_sync(
        self, container_id: str, cmd: tuple[str, ...], timeout_seconds: float | None = None
    ) -> ExecResult:
        """CRI ExecSync. Past its time the whole process tree has been ended before DeadlineExceeded is raised."""
        record = self.runnable(container_id, cmd)
        process = await self._specs.exec_process(record, cmd, terminal=False)
        command = ExecCommand(
            id=record.id,
            handler=record.runtime_handler,
            process=process,
            timeout_seconds=timeout_seconds,
            stdio_uid=self._specs.stdio_uid(record),
        )
        return await self._runtime.exec_sync(command)

    def runnable(self, container_id: str, cmd: tuple[str, ...]) -> ContainerRecord:
        """The running container; typed errors for anything else."""
        if not cmd or not cmd[0]:
            raise InvalidInput("cmd: must not be empty")
        record = self._registry.containers.require(container_id)
        if not can_exec(record.state):
            raise FailedPrecondition(f"container {record.id} is {record.state.value}, not running")
        return record
