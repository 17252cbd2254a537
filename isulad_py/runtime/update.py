"""Changing a container's limits: all of them, or none."""

from __future__ import annotations

from functools import partial

import structlog

from isulad_py.host import blocking, pidfd
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import EngineError, HostFailure
from isulad_py.model.ids import ContainerId
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import PutBack
from isulad_py.runtime import limits, members
from isulad_py.runtime.bundle import Bundles
from isulad_py.runtime.programs import Call, Programs
from isulad_py.runtime.resources import update_document

log = structlog.get_logger(__name__)


class Updates:
    """A runtime may fail half-way, and not all of them put back what they wrote before."""

    def __init__(self, *, programs: Programs, bundles: Bundles) -> None:
        self._programs = programs
        self._bundles = bundles

    async def run(self, container_id: ContainerId, handler: str, wanted: Resources) -> PutBack:
        """As ports.runtime.ContainerRuntime.update."""
        held, memory_and_swap = await blocking.run(self._look, container_id, wanted)
        document = update_document(wanted, memory_and_swap_now=memory_and_swap, v2=held.v2)
        put_back = partial(self._put_back, container_id, handler, held)
        try:
            await self._set(container_id, handler, document)
            await blocking.run_to_end(_set_oom_scores, held, wanted.oom_score_adj)
        except BaseException:
            await to_the_end(put_back(), name="put limits back")
            raise
        return put_back

    async def _set(self, container_id: ContainerId, handler: str, document: bytes) -> None:
        words = ("update", "--resources", "-", container_id)
        await self._programs.call(Call(handler=handler, words=words, step="update", stdin=document))

    async def _put_back(self, container_id: ContainerId, handler: str, held: limits.Held) -> None:
        """systemd writes down again what it was told last (at each daemon-reload): so it is told, too."""
        if self._programs.by_systemd(handler):
            try:
                await self._set(container_id, handler, update_document(limits.as_resources(held)))
            except EngineError as error:
                log.warning("systemd not told that limits were put back", container=container_id, error=str(error))
        await blocking.run(limits.put_back, held)

    def _look(self, container_id: ContainerId, wanted: Resources) -> tuple[limits.Held, int | None]:
        cgroups = self._bundles.record(container_id).cgroups
        limits.check_room(cgroups, wanted)
        held = limits.hold(cgroups, wanted, members.processes(members.listing(cgroups)))
        return held, members.memory_and_swap_limit(cgroups)


def _set_oom_scores(held: limits.Held, score: int) -> None:
    """Raises HostFailure where a process that still runs refuses it."""
    for pid, former in held.oom_scores.items():
        if former != score and not limits.set_oom_score(pid, score) and pidfd.start_time(pid):
            raise HostFailure(f"update: linux.oom_score_adj of process {pid} cannot be set to {score}")
