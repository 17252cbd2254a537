"""How containers end: signals, waiting, removal of every trace. All of it works after the daemon's death, and removal
for a container that was never made whole, too."""

from __future__ import annotations

import asyncio
import posixpath
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from isulad_py.host import blocking, kernel_log, pidfd
from isulad_py.model.container import ExitFact, Processes
from isulad_py.model.errors import EngineError, FailedPrecondition, HostFailure, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import NOTHING, Remembered
from isulad_py.runtime import members, runc
from isulad_py.runtime.bundle import Bundles, Launched
from isulad_py.runtime.layout import Layout
from isulad_py.runtime.programs import Call, Programs
from isulad_py.spec import cgroup_paths

log = structlog.get_logger(__name__)

DIRECT: Final = frozenset({"runc", "crun"})
"""Families whose first process is a process of this host: its signals need no program. A VM runtime's is not."""
KILLED_SECONDS: Final = 10.0
MONITOR_SECONDS: Final = 5.0
"""For the monitor to write the last lines and the exit code; a client that does not read can make it hang."""
CGROUP_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.01
UNKNOWN_CODE: Final = 255
UNKNOWN_REASON: Final = "ContainerStatusUnknown"


class Endings:
    def __init__(
        self,
        *,
        programs: Programs,
        bundles: Bundles,
        layout: Layout,
        cgroup_mounts: Mapping[str, str],
        clock: Clock,
        kmsg: str = kernel_log.KMSG,
    ) -> None:
        self._programs = programs
        self._bundles = bundles
        self._layout = layout
        self._mounts = cgroup_mounts
        self._clock = clock
        self._kmsg = kmsg

    async def kill(
        self,
        container_id: ContainerId,
        handler: str,
        number: int,
        *,
        everyone: bool,
        remembered: Remembered = NOTHING,
    ) -> None:
        """Success when it has already ended."""
        launched = await blocking.run(self._launched, container_id, remembered)
        if launched.family not in DIRECT:
            await self._kill_by_program(container_id, handler, number, everyone=everyone)
            return
        await blocking.run(self._signal, launched, number, everyone=everyone)

    def _launched(self, container_id: ContainerId, remembered: Remembered) -> Launched:
        """Raises NotFound where neither its bundle nor the engine knows of a process."""
        try:
            return self._bundles.record(container_id)
        except NotFound:
            if not remembered.processes.pid:
                raise
        log.warning("container has lost its bundle", container=container_id)
        cgroups = self._own(remembered.cgroup_path, container_id)
        return Launched(handler="", family="runc", processes=remembered.processes, cgroups=cgroups)

    def _own(self, cgroup_path: str, container_id: ContainerId) -> dict[str, str]:
        """Directory by controller."""
        path = "/" + cgroup_path.strip("/")
        return _own({key: mount + path for key, mount in self._mounts.items()}, container_id) if cgroup_path else {}

    @staticmethod
    def _signal(launched: Launched, number: int, *, everyone: bool) -> None:
        processes = launched.processes
        pidfd.send(processes.pid, processes.pid_started, number)
        if everyone:
            members.signal_all(members.listing(launched.cgroups), number)
        if number == signal.SIGKILL:
            members.thaw(launched.cgroups)

    async def _kill_by_program(self, container_id: ContainerId, handler: str, number: int, *, everyone: bool) -> None:
        words = ("kill", *(["--all"] if everyone else []), container_id, str(number))
        try:
            await self._programs.call(Call(handler=handler, words=words, step="kill"))
        except FailedPrecondition:
            log.debug("signal for a container that has ended", container=container_id, signal=number)

    async def wait_exit(self, container_id: ContainerId, processes: Processes, cgroup_path: str = "") -> ExitFact:
        """First the monitor, since its word counts, and only where it left none the container itself."""
        remembered = Remembered(processes=processes, cgroup_path=cgroup_path)
        if not processes.pid:
            processes = await self._recorded(container_id)
        for pid, started in (
            (0, 0),
            (processes.monitor_pid, processes.monitor_started),
            (processes.pid, processes.pid_started),
        ):
            await pidfd.wait_end(pid, started)
            fact = await blocking.run(self._exit_fact, container_id)
            if fact is not None:
                break
        await self._end_remaining(container_id, remembered)
        return fact or _unknown("the monitor ended before the container did", time.time_ns())

    async def _end_remaining(self, container_id: ContainerId, remembered: Remembered) -> None:
        """In a PID namespace that is not the container's own the others do not end with the first process, as they do
        in one that is (pid_namespaces(7)), and would be in the way of the container's successor."""
        try:
            launched = await blocking.run(self._launched, container_id, remembered)
        except NotFound:
            return
        if launched.family in DIRECT:
            await self._empty(members.listing(_own(launched.cgroups, container_id)))

    async def _recorded(self, container_id: ContainerId) -> Processes:
        try:
            return (await blocking.run(self._bundles.record, container_id)).processes
        except NotFound:
            return Processes()

    def _exit_fact(self, container_id: ContainerId) -> ExitFact | None:
        exit_ = self._bundles.exit(container_id)
        if exit_ is None:
            return None
        if exit_.code < 0:
            return _unknown("the monitor could not tell the exit status", exit_.at)
        return ExitFact(exit_code=exit_.code, finished_at=exit_.at, oom_killed=self._out_of_memory(container_id))

    def _out_of_memory(self, container_id: ContainerId) -> bool:
        """The cgroup's own counter, as long as there is the cgroup: the monitor hears of the pod's shortages too.

        systemd removes a scope with its last process, often before anybody has read its counter: then the kernel's log
        has it, for containers that ended while there was no daemon, too.
        """
        try:
            kills = members.oom_kills(self._bundles.record(container_id).cgroups)
        except NotFound:
            kills = None
        if kills is not None:
            return kills > 0
        return self._bundles.out_of_memory(container_id) or self._is_in_kernel_log(container_id)

    def _is_in_kernel_log(self, container_id: ContainerId) -> bool:
        return any(container_id in path for path in kernel_log.cgroups_short_of_memory(self._kmsg))

    async def delete(self, container_id: ContainerId, handler: str, *, remembered: Remembered = NOTHING) -> None:
        """Idempotent. The bundle goes last, so that what could not be removed is found again."""
        handler = handler or await blocking.run(self._bundles.handler_of, container_id)
        if not remembered.processes.pid and not await blocking.run(self._exists, container_id, handler):
            return
        try:
            launched = await blocking.run(self._launched, container_id, remembered)
        except NotFound:
            cgroups = await self._end_half_made(container_id)
            force = True
        else:
            cgroups = _own(launched.cgroups, container_id)
            await self._end_launched(container_id, launched, cgroups)
            force = not launched.handler or launched.family not in DIRECT
        await self._delete_state(container_id, handler, force=force)
        await self._remove_cgroups(cgroups)
        await blocking.run(self._bundles.remove, container_id)

    def _exists(self, container_id: ContainerId, handler: str) -> bool:
        return self._bundles.exists(container_id) or self._bundles.has_runtime_state(container_id, handler)

    async def _end_launched(self, container_id: ContainerId, launched: Launched, cgroups: Mapping[str, str]) -> None:
        processes = launched.processes
        directory = members.listing(cgroups)
        if launched.family in DIRECT:
            await blocking.run(self._signal, launched, signal.SIGKILL, everyone=bool(directory))
        else:
            await self._kill_by_program(container_id, launched.handler, signal.SIGKILL, everyone=False)
        try:
            async with asyncio.timeout(KILLED_SECONDS):
                await pidfd.wait_end(processes.pid, processes.pid_started)
        except TimeoutError as error:
            raise HostFailure(f"delete: process {processes.pid} still runs after SIGKILL") from error
        await self._empty(directory)
        await self._end_monitor(container_id, processes)
        await blocking.run(_remove_all, launched.monitor_cgroups)

    async def _end_monitor(self, container_id: ContainerId, processes: Processes) -> None:
        try:
            async with asyncio.timeout(MONITOR_SECONDS):
                await pidfd.wait_end(processes.monitor_pid, processes.monitor_started)
        except TimeoutError:
            log.warning("monitor outlives its container: killed", container=container_id, pid=processes.monitor_pid)
            pidfd.send(processes.monitor_pid, processes.monitor_started, signal.SIGKILL)
            await pidfd.wait_end(processes.monitor_pid, processes.monitor_started)

    async def _end_half_made(self, container_id: ContainerId) -> dict[str, str]:
        """Monitor and runtime bear the bundle's path in their command lines; what they made is in the cgroup that the
        spec names. Its directories."""
        try:
            async with asyncio.timeout(KILLED_SECONDS):
                # Twice: one that forks and exits during a look is seen in neither shape.
                while await self._end_programs(container_id) or await self._end_programs(container_id):
                    pass
        except TimeoutError as error:
            raise HostFailure("delete: the monitor or the runtime still runs after SIGKILL") from error
        path = cgroup_paths.runtime_path(await blocking.run(self._bundles.cgroups_path, container_id))
        cgroups = self._own(path, container_id)
        await self._empty(members.listing(cgroups))
        return cgroups

    async def _end_programs(self, container_id: ContainerId) -> bool:
        """Kills the monitor and the runtime; whether there were any."""
        found = await blocking.run(self._programs_of, container_id)
        for pid, started in found.items():
            pidfd.send(pid, started, signal.SIGKILL)
        for pid, started in found.items():
            await pidfd.wait_end(pid, started)
        return bool(found)

    def _programs_of(self, container_id: ContainerId) -> dict[int, int]:
        """With what they have started: the runtime's helpers (CRIU) bear no path, and would outlive it."""
        found = pidfd.find_by_arguments([self._layout.bundle(container_id)])
        for pid in list(found):
            found |= pidfd.stop_descendants(pid)
        return found

    async def _empty(self, directory: str) -> None:
        """Kills until nothing is left: processes of a shared PID namespace do not end with the first one."""
        deadline = self._clock.monotonic() + KILLED_SECONDS
        while directory and (left := await blocking.run(members.kill_all, directory)):
            if self._clock.monotonic() > deadline:
                raise HostFailure(f"{len(left)} processes still run in {directory} after SIGKILL")
            await self._clock.sleep(POLL_SECONDS)

    async def _delete_state(self, container_id: ContainerId, handler: str, *, force: bool) -> None:
        if not handler or not await blocking.run(self._bundles.has_runtime_state, container_id, handler):
            return
        if handler in self._programs.handlers:  # else it was taken out of the configuration, and its files must do
            await self._delete_by_program(container_id, handler, force=force)
        await blocking.run(self._bundles.remove_runtime_state, container_id, handler)

    async def _delete_by_program(self, container_id: ContainerId, handler: str, *, force: bool) -> None:
        words = tuple(runc.delete_args(container_id, force=force))
        try:
            await self._programs.call(Call(handler=handler, words=words, step="delete"))
        except NotFound:
            log.debug("runtime had nothing to delete", container=container_id)
        except FailedPrecondition:
            if force:
                raise
            await self._delete_by_program(container_id, handler, force=True)

    async def _remove_cgroups(self, cgroups: Mapping[str, str]) -> None:
        """runc leaves those that were not empty yet, or that it did not make."""
        deadline = self._clock.monotonic() + CGROUP_SECONDS
        while left := await blocking.run(_remove_all, cgroups.values()):
            if self._clock.monotonic() > deadline:
                raise HostFailure(f"delete: cgroup {left[0]} is busy")
            await self._clock.sleep(POLL_SECONDS)


def _own(cgroups: Mapping[str, str], container_id: ContainerId) -> dict[str, str]:
    """Those that bear the container's id: whatever else the spec names is not ours to clear."""
    return {key: path for key, path in cgroups.items() if container_id in posixpath.basename(path)}


def _remove_all(directories: Iterable[str]) -> list[str]:
    return [directory for directory in set(directories) if not members.remove(directory)]


def _unknown(message: str, at: int) -> ExitFact:
    return ExitFact(exit_code=UNKNOWN_CODE, finished_at=at, reason=UNKNOWN_REASON, message=message)


def note_failure(error: BaseException, cleanup: EngineError) -> None:
    """Keeps what failed while undoing beside the cause."""
    if isinstance(error, EngineError):
        error.cleanup.append(cleanup)
    else:
        log.error("undoing failed", error=str(cleanup))
