"""Commands of `exec` whose daemon has died: nobody reads their output, and nobody will ever end them."""

from __future__ import annotations

from typing import Final

import structlog

from isulad_py.host import blocking, files
from isulad_py.model.errors import NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.clock import Clock
from isulad_py.runtime import members
from isulad_py.runtime.bundle import Bundles, read_number
from isulad_py.runtime.layout import EXEC_PREFIX, Layout

log = structlog.get_logger(__name__)

KILL_ROUNDS: Final = 25
ROUND_SECONDS: Final = 0.02


class Abandoned:
    def __init__(self, *, bundles: Bundles, layout: Layout, clock: Clock) -> None:
        self._bundles = bundles
        self._layout = layout
        self._clock = clock

    async def end(self, container_id: ContainerId) -> None:
        """As ports.runtime.ContainerRuntime.end_commands."""
        for group in await blocking.run(self._groups, container_id):
            if await blocking.run(self._is_under_way, container_id, group):
                await self._kill(container_id, group)
            await blocking.run(group.dissolve)
        for path in await blocking.run(self._bundles.exec_files, container_id):
            await blocking.run(files.remove_file, path)

    def _groups(self, container_id: ContainerId) -> list[members.ExecGroup]:
        try:
            launched = self._bundles.record(container_id)
        except NotFound:
            return []
        return members.ExecGroup.found(launched.cgroups, container_id, EXEC_PREFIX)

    def _is_under_way(self, container_id: ContainerId, group: members.ExecGroup) -> bool:
        """Its number is written when the command runs, and is in the group until it ends."""
        command = read_number(self._layout.exec_pid_file(container_id, group.name))
        return not command or command in group.processes()

    async def _kill(self, container_id: ContainerId, group: members.ExecGroup) -> None:
        for _ in range(KILL_ROUNDS):
            if not await blocking.run(group.kill):
                return
            await self._clock.sleep(ROUND_SECONDS)
        log.warning("processes of an abandoned exec still run after SIGKILL", container=container_id)
