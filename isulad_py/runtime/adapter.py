"""The OCI runtime with its monitor: implements ports.runtime.ContainerRuntime."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, structs

from isulad_py.host import blocking, descriptors, pidfd
from isulad_py.host.cgroup_moves import CgroupMoves
from isulad_py.host.tasks import to_the_end
from isulad_py.model.container import ExitFact, Processes
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    EngineError,
    FailedPrecondition,
    HostFailure,
    NotFound,
)
from isulad_py.model.facts import HostFacts
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.model.ids import ContainerId
from isulad_py.model.resources import Resources
from isulad_py.ports.clock import Clock
from isulad_py.ports.runtime import NOTHING, ExecCommand, ExecResult, HandlerFeatures, Launch, PutBack, Remembered
from isulad_py.runtime import criu, members, monitor, runc
from isulad_py.runtime.abandoned import Abandoned
from isulad_py.runtime.attach import Attachments
from isulad_py.runtime.attach_output import Patience
from isulad_py.runtime.bundle import Bundles, Launched, read_number
from isulad_py.runtime.checkpoints import RuntimeCheckpoints
from isulad_py.runtime.command import Commands
from isulad_py.runtime.control import Control
from isulad_py.runtime.ending import DIRECT, Endings, note_failure
from isulad_py.runtime.exec import exec_sync
from isulad_py.runtime.exec_streams import StreamingExecs
from isulad_py.runtime.layout import Layout
from isulad_py.runtime.programs import Call, Programs
from isulad_py.runtime.streams import RuntimeStreams
from isulad_py.runtime.update import Updates

log = structlog.get_logger(__name__)


class Options(Struct, frozen=True, kw_only=True):
    state: str
    """Directory for everything that does not outlive a reboot."""
    monitor: str = "conmon"
    """Absolute, or a program to look up."""
    criu: str = "criu"
    """Absolute, or a program to look up; empty for no checkpoints."""
    create_seconds: float = 120.0
    command_seconds: float = 60.0
    """For a runtime's other commands but exec."""
    program_seconds: float = 5.0
    """For a started container to begin its own program; one on a file system that hangs need not do so."""


_DEFAULTS: Final = Options(state="/var/run/isulad")
_PATIENCE: Final = Patience()


class OciRuntime:
    def __init__(
        self,
        *,
        handlers: Mapping[str, RuntimeHandler],
        facts: HostFacts,
        clock: Clock,
        options: Options = _DEFAULTS,
    ) -> None:
        self._facts = facts
        self._options = options
        self._layout = Layout(options.state)
        self._bundles = Bundles(self._layout, facts.boot_id)
        self._programs = Programs(
            handlers=handlers,
            monitor=options.monitor,
            layout=self._layout,
            command_seconds=options.command_seconds,
            side_tree=facts.cgroup_mounts.get(members.UNIFIED, "") if facts.cgroup_version == 1 else "",
        )
        self._endings = Endings(
            programs=self._programs,
            bundles=self._bundles,
            layout=self._layout,
            cgroup_mounts=facts.cgroup_mounts,
            clock=clock,
        )
        self._moves = CgroupMoves(facts.cgroup_mounts)
        self._commands = Commands(
            programs=self._programs, bundles=self._bundles, layout=self._layout, moves=self._moves, clock=clock
        )
        self._abandoned = Abandoned(bundles=self._bundles, layout=self._layout, clock=clock)
        self._control = Control(clock=clock)
        self._updates = Updates(programs=self._programs, bundles=self._bundles)
        self._clock = clock

    async def create(self, launch: Launch) -> Processes:
        version = await self._programs.version(launch.handler)
        self._programs.monitor_path()
        bundle = self._layout.bundle(launch.id)
        try:
            async with asyncio.timeout(self._options.create_seconds):
                await to_the_end(blocking.run(self._bundles.write, launch), name="write a bundle")
                return await self._launch(launch, bundle, version.family)
        except TimeoutError as error:
            late = DeadlineExceeded(f"create: no container within {self._options.create_seconds:g} s")
            await self._undo_create(launch, late)
            raise late from error
        except AlreadyExists:
            raise  # the bundle is another's
        except BaseException as error:
            await self._undo_create(launch, error)
            raise

    async def _launch(self, launch: Launch, bundle: str, family: str) -> Processes:
        files = monitor.Files(
            bundle=bundle,
            pid_file=self._layout.pid_file(launch.id),
            monitor_pid_file=self._layout.monitor_pid_file(launch.id),
            log=self._bundles.log_argument(launch),
        )
        groups = self._monitor_groups(launch)
        async with self._programs.begun(launch.handler, folder=bundle) as program:
            args = monitor.arguments(launch, files, [*program, *self._programs.global_args(launch.handler)])
            argv = [self._programs.monitor_path(), *args]
            self._moves.warm()
            place = partial(self._place, launch, groups)
            env = criu.environment(self._options.criu) if launch.restore else {}
            try:
                pid = await monitor.start(argv, bundle=bundle, place=place, spec=launch.spec, env=env)
            except EngineError as error:
                if not launch.restore:
                    raise
                raise await blocking.run(criu.explained, error, self._layout.restore_log(launch.id)) from error
        own = tuple(groups) if self._facts.cgroup_version == 2 else ()
        seen = Launched(
            handler=launch.handler,
            family=family,
            monitor_cgroups=own,
            log_path=launch.log_path,
            terminal=launch.terminal,
            stdin=launch.stdin,
            stdin_once=launch.stdin_once,
        )
        return await to_the_end(blocking.run(self._take_stock, launch, pid, seen), name="record a launch")

    def _take_stock(self, launch: Launch, pid: int, seen: Launched) -> Processes:
        container_id = launch.id
        monitor_pid = read_number(self._layout.monitor_pid_file(container_id))
        processes = Processes(
            pid=pid,
            pid_started=pidfd.start_time(pid),
            monitor_pid=monitor_pid,
            monitor_started=pidfd.start_time(monitor_pid),
        )
        if not (processes.pid_started and processes.monitor_started):
            raise HostFailure("create: the container's first process, or its monitor, ended at once")
        if launch.stdio_uid is not None:
            descriptors.give_pipes([f"/proc/{pid}/fd/{number}" for number in range(3)], launch.stdio_uid)
        cgroups = members.in_side_tree(pid, self._facts.cgroup_mounts)
        self._bundles.write_record(container_id, structs.replace(seen, processes=processes, cgroups=cgroups))
        return processes

    def _monitor_groups(self, launch: Launch) -> list[str]:
        """On v2 a group of its own below the pod's: one that has children cannot hold processes (cgroup-v2.rst, No
        Internal Process Constraint)."""
        if not launch.monitor_cgroup.startswith("/"):
            return []
        path = launch.monitor_cgroup.rstrip("/")
        if self._facts.cgroup_version == 2:
            path = posixpath.join(path, f"monitor-{launch.id}")
        return [mount + path for mount in sorted(set(self._facts.cgroup_mounts.values()))]

    async def _place(self, launch: Launch, groups: list[str], pid: int) -> None:
        """A monitor that cannot be moved is accounted to this daemon: no reason to refuse the container."""
        refused = await to_the_end(blocking.run(self._join, groups, pid), name="place a monitor")
        if refused:
            log.info("monitor stays outside its pod's cgroup", container=launch.id, error=str(refused[0]))

    def _join(self, groups: list[str], pid: int) -> list[OSError]:
        if self._facts.cgroup_version == 2:
            for group in groups:
                with contextlib.suppress(OSError):
                    Path(group).mkdir()  # not its parents: the pod's cgroup is not ours to make
        return [error for error in members.join(pid, groups) if not isinstance(error, FileNotFoundError)]

    async def _undo_create(self, launch: Launch, error: BaseException) -> None:
        try:
            await to_the_end(self._endings.delete(launch.id, launch.handler), name="undo a create")
        except EngineError as cleanup:
            note_failure(error, cleanup)

    async def start(self, container_id: ContainerId, handler: str) -> None:
        launched = await self._move(container_id, handler, "start", "created")
        # crun's code leaves signals to the kernel, as a new program does, and may itself be what runs (WebAssembly).
        if launched.family == "runc":
            await _wait_program(container_id, launched.processes, self._options.program_seconds)

    async def pause(self, container_id: ContainerId, handler: str) -> None:
        await self._move(container_id, handler, "pause", "running")

    async def resume(self, container_id: ContainerId, handler: str) -> None:
        await self._move(container_id, handler, "resume", "paused")

    async def _move(self, container_id: ContainerId, handler: str, command: str, needed: str) -> Launched:
        """Asks first: runtimes differ in what they refuse."""
        launched = await blocking.run(self._bundles.record, container_id)
        state = await blocking.run(self._read_state, container_id, handler)
        if state not in {"", needed}:
            raise FailedPrecondition(f"{command}: container {container_id} is {state}, not {needed}")
        await self._programs.call(Call(handler=handler, words=(command, container_id), step=command))
        return launched

    async def kill(
        self,
        container_id: ContainerId,
        handler: str,
        signal: int,
        *,
        everyone: bool = False,
        remembered: Remembered = NOTHING,
    ) -> None:
        await self._endings.kill(container_id, handler, signal, everyone=everyone, remembered=remembered)

    async def wait_exit(self, container_id: ContainerId, processes: Processes, *, cgroup_path: str = "") -> ExitFact:
        return await self._endings.wait_exit(container_id, processes, cgroup_path)

    async def delete(self, container_id: ContainerId, handler: str, *, remembered: Remembered = NOTHING) -> None:
        await self._endings.delete(container_id, handler, remembered=remembered)

    async def state(self, container_id: ContainerId, handler: str) -> str:
        return await blocking.run(self._read_state, container_id, handler) or await self._ask_state(
            container_id, handler
        )

    def _read_state(self, container_id: ContainerId, handler: str) -> str:
        """From files, as runc and crun themselves tell it; empty where it takes the runtime to tell."""
        try:
            launched = self._bundles.record(container_id)
        except NotFound:
            return ""
        if launched.family not in DIRECT or not self._bundles.has_known_state(container_id, handler):
            return ""
        if not pidfd.alive(launched.processes.pid, launched.processes.pid_started):
            return "stopped"
        if self._bundles.waits_for_start(container_id, handler):
            return "created"
        return "paused" if members.frozen(launched.cgroups) else "running"

    async def _ask_state(self, container_id: ContainerId, handler: str) -> str:
        if not await blocking.run(self._bundles.has_runtime_state, container_id, handler):
            return ""
        try:
            return runc.parse_state(
                await self._programs.call(Call(handler=handler, words=("state", container_id), step="state"))
            )
        except NotFound:
            return ""

    async def exec_sync(self, command: ExecCommand) -> ExecResult:
        return await exec_sync(self._commands, command)

    async def end_commands(self, container_id: ContainerId) -> None:
        await self._abandoned.end(container_id)

    def streams(self, *, patience: Patience = _PATIENCE) -> RuntimeStreams:
        """What streaming needs, over the same containers."""
        execs = StreamingExecs(commands=self._commands, bundles=self._bundles, layout=self._layout)
        attachments = Attachments(
            bundles=self._bundles,
            layout=self._layout,
            endings=self._endings,
            control=self._control,
            clock=self._clock,
            patience=patience,
        )
        return RuntimeStreams(execs=execs, attachments=attachments)

    def checkpoints(self) -> RuntimeCheckpoints:
        """What takes checkpoints of the same containers."""
        return RuntimeCheckpoints(programs=self._programs, bundles=self._bundles, criu=self._options.criu)

    async def update(self, container_id: ContainerId, handler: str, resources: Resources) -> PutBack:
        return await self._updates.run(container_id, handler, resources)

    async def reopen_log(self, container_id: ContainerId) -> None:
        launched = await blocking.run(self._bundles.record, container_id)
        if launched.log_path:
            await self._control.reopen_log(self._layout.control(container_id), launched.log_path, launched.processes)

    async def resize(self, container_id: ContainerId, width: int, height: int) -> None:
        await self._control.resize(self._layout.control(container_id), width=width, height=height)

    async def bundle_spec(self, container_id: ContainerId) -> bytes:
        return await blocking.run(self._bundles.spec, container_id)

    async def present(self) -> frozenset[ContainerId]:
        return await blocking.run(self._bundles.present)

    async def features(self, handler: str) -> HandlerFeatures:
        return await self._programs.features(handler)

    async def monitor_obstacle(self) -> str:
        try:
            await blocking.run(self._programs.monitor_path)
        except HostFailure as error:
            return str(error)
        return ""

    async def versions(self) -> dict[str, str]:
        return await self._programs.versions()


async def _wait_program(container_id: ContainerId, processes: Processes, seconds: float) -> None:
    """Until then a signal meets runc's own code, which has handlers: at SIGTERM it ends with 2, and nothing has run."""
    try:
        async with asyncio.timeout(seconds):
            await pidfd.wait_program(processes.pid, processes.pid_started)
    except TimeoutError:
        log.warning("container has not begun its program yet", container=container_id)
