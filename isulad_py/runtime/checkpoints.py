"""Checkpoints by the OCI runtime (`runc checkpoint`, which crun has too): implements ports.checkpoints.Checkpointer."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Final

from isulad_py.host import blocking, pidfd, process
from isulad_py.host.tasks import to_the_end
from isulad_py.model.container import Processes
from isulad_py.model.errors import HostFailure, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.checkpoints import CheckpointPlace, Dump
from isulad_py.runtime import criu, runc
from isulad_py.runtime.bundle import Bundles
from isulad_py.runtime.programs import Programs

END_SECONDS: Final = 10.0


class RuntimeCheckpoints:
    def __init__(self, *, programs: Programs, bundles: Bundles, criu: str) -> None:
        self._programs = programs
        self._bundles = bundles
        self._criu = criu

    async def obstacle(self, handler: str) -> str:
        return await criu.obstacle(await self._programs.features(handler), program=self._criu)

    async def dump(self, dump: Dump) -> None:
        await blocking.run(self._bundles.record, dump.id)
        args = self._programs.global_args(dump.handler)
        args += runc.checkpoint_args(dump.id, images=dump.place.images, work=dump.place.work)
        try:
            async with self._programs.begun(dump.handler) as program:
                # A group of its own: a runtime that is ended does not end CRIU, which lets processes go when it dies.
                env = criu.environment(self._criu)
                done = await process.run(process.Command(argv=(*program, *args), env=env, new_session=True))
        except BaseException:
            await to_the_end(self.end_dump(dump.place), name="end a dump")
            raise
        if done.returncode:
            said = runc.error_of(done.stderr) or f"exit status {done.returncode}"
            error = runc.failure("checkpoint", said)
            if isinstance(error, NotFound):
                raise error
            raise await blocking.run(criu.explained, error, f"{dump.place.work}/dump.log")

    async def end_dump(self, place: CheckpointPlace) -> None:
        try:
            async with asyncio.timeout(END_SECONDS):
                # Twice: the runtime that was about to start CRIU is seen before it has.
                while await self._end_programs(place) or await self._end_programs(place):
                    pass
        except TimeoutError as error:
            raise HostFailure("checkpoint: the runtime or CRIU still runs after SIGKILL") from error

    async def restored(self, container_id: ContainerId) -> Processes:
        return (await blocking.run(self._bundles.record, container_id)).processes

    @staticmethod
    async def _end_programs(place: CheckpointPlace) -> bool:
        found = await blocking.run(_programs_of, place)
        for pid, started in found.items():
            pidfd.send(pid, started, signal.SIGKILL)
        for pid, started in found.items():
            await pidfd.wait_end(pid, started)
        return bool(found)


def _programs_of(place: CheckpointPlace) -> dict[int, int]:
    """The runtime has the directory in its command line and starts CRIU, which works in it and may outlive it."""
    found = pidfd.find_by_arguments([place.images])
    for pid in list(found):
        found |= pidfd.stop_descendants(pid)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            where = str((entry / "cwd").readlink())
        except OSError:
            continue
        if where.removesuffix(" (deleted)") == place.work:
            found[int(entry.name)] = pidfd.start_time(int(entry.name))
    return {pid: started for pid, started in found.items() if started}
