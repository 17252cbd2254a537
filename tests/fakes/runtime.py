"""Containers in memory. They pass tests/contract/test_runtime.py.

A container's program is told by its arguments: `true`, `false`, `sh -c "exit 3"` end as they say once started;
`sleep` ignores signals, as a first process without a handler does; `sh -c "sleep 9 & ..."` leaves a process behind;
`sh -c "trap 'exit 7' TERM; ..."` ends so at SIGTERM; one with `missing` in its name cannot be started; others run until
SIGTERM (143), SIGKILL or `end`.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from isulad_py.model.container import ExitFact, Processes
from isulad_py.model.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from isulad_py.model.ids import ContainerId
from isulad_py.model.resources import Resources
from isulad_py.ports.runtime import NOTHING, ExecCommand, ExecResult, HandlerFeatures, Launch, PutBack, Remembered
from tests.fakes.faults import Faults

OUTPUT_LIMIT = 16 * 1024 * 1024
KERNEL_DEFAULTS = Resources(
    cpu_period_us=100_000,
    cpu_quota_us=-1,
    cpu_shares=1024,
    memory_limit_bytes=-1,
    memory_swap_limit_bytes=-1,
    cpuset_cpus="0-1",
    cpuset_mems="0",
)


@dataclass
class FakeContainer:
    launch: Launch
    processes: Processes
    state: str = "created"
    fact: ExitFact | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    signals: list[int] = field(default_factory=list)
    resources: list[Resources] = field(default_factory=list)
    """As each update asked for them."""
    limits: Resources = KERNEL_DEFAULTS
    sizes: list[tuple[int, int]] = field(default_factory=list)
    others: int = 0
    """Processes beside the first one that do not end with it: the PID namespace is the host's or the pod's."""
    log_openings: int = 1

    @property
    def args(self) -> list[str]:
        return _args(msgspec.json.decode(self.launch.spec).get("process", {}))


def _args(process: dict[str, Any]) -> list[str]:
    return list(process.get("args") or [""])


class FakeRuntime:
    """Implements ports.runtime.ContainerRuntime. It outlives the daemons of one test, as containers do.

    `end` and `lose` are what happens to containers by themselves; `on_exec` answers instead of the built-in programs;
    `reboot` ends all without a trace. Faults: create, start, kill, end_remaining, delete, exec_sync, update, pause,
    resume, reopen_log, resize. A `create` that fails or is cancelled leaves nothing, a `start` that fails a created
    container.
    """

    def __init__(self, *, handlers: tuple[str, ...] = ("runc",), now_ns: Callable[[], int] = time.time_ns) -> None:
        self.faults = Faults()
        self.handlers = handlers
        self.containers: dict[ContainerId, FakeContainer] = {}
        self.lost: dict[int, FakeContainer] = {}
        """By process number, those whose directory is gone while they run."""
        self.half_made: set[ContainerId] = set()
        """Ids with something on disk and no container, as a daemon that dies in `create` leaves them."""
        self.on_exec: Callable[[ExecCommand], ExecResult] | None = None
        self.monitor_reason = ""
        self.commands_ended: list[ContainerId] = []
        self.features_by_handler: dict[str, HandlerFeatures] = {}
        self._now_ns = now_ns
        self._last_pid = 1000

    def end(self, container_id: str, code: int = 0, *, oom_killed: bool = False) -> None:
        """The container's first process exits."""
        self._end_of(self._find(ContainerId(container_id)), code, oom_killed=oom_killed)

    def _end_of(self, container: FakeContainer, code: int, *, oom_killed: bool = False) -> None:
        self._end(container, ExitFact(exit_code=code, finished_at=self._now_ns(), oom_killed=oom_killed))

    def lose_directory(self) -> None:
        """Everything in the state directory goes; what runs, runs on."""
        self.lost |= {container.processes.pid: container for container in self.containers.values()}
        self.containers.clear()
        self.half_made.clear()

    def lose(self, container_id: str) -> None:
        """Container and monitor are killed at once: nobody knows the exit code."""
        container = self._find(ContainerId(container_id))
        fact = ExitFact(
            exit_code=255, finished_at=self._now_ns(), reason="ContainerStatusUnknown", message="the monitor is gone"
        )
        self._end(container, fact)

    def reboot(self) -> None:
        self.containers.clear()
        self.lost.clear()
        self.half_made.clear()

    @staticmethod
    def _end(container: FakeContainer, fact: ExitFact) -> None:
        if container.fact is None:
            container.fact = fact
            container.state = "stopped"
            container.ended.set()

    def _find(self, container_id: ContainerId) -> FakeContainer:
        try:
            return self.containers[container_id]
        except KeyError:
            raise NotFound(f"container {container_id} is not known to the runtime") from None

    async def create(self, launch: Launch) -> Processes:
        if launch.handler not in self.handlers:
            raise InvalidInput(f"runtime handler: {launch.handler!r} is not configured")
        if launch.id in self.containers:
            raise AlreadyExists(f"container {launch.id} has a bundle already")
        if launch.log_path and not launch.log_path.startswith("/"):
            raise InvalidInput(f"log_path: {launch.log_path} is not absolute")
        self.half_made.add(launch.id)
        try:
            await self.faults.at("create")
        finally:
            self.half_made.discard(launch.id)
        self._last_pid += 2
        processes = Processes(pid=self._last_pid, pid_started=1, monitor_pid=self._last_pid + 1, monitor_started=1)
        container = FakeContainer(launch=launch, processes=processes)
        _check_program(container.args, "create")
        self.containers[launch.id] = container
        if launch.restore:
            container.state = "running"
        return processes

    async def start(self, container_id: ContainerId, handler: str) -> None:
        container = self._find(container_id)
        await self.faults.at("start")
        if container.state != "created":
            raise FailedPrecondition(f"start: container {container_id} is {container.state}")
        container.state = "running"
        container.others = _script(container.args).count(" & ")
        code = _ends_with(container.args)
        if code is not None:
            self.end(container_id, code)

    async def kill(
        self,
        container_id: ContainerId,
        handler: str,
        signal: int,
        *,
        everyone: bool = False,
        remembered: Remembered = NOTHING,
    ) -> None:
        container = self._known(container_id, remembered) or self._find(container_id)
        await self.faults.at("kill")
        container.signals.append(signal)
        code = _reaction(container, signal)
        if code is not None:
            self._end_of(container, code)

    def _known(self, container_id: ContainerId, remembered: Remembered) -> FakeContainer | None:
        """Also one whose directory is lost, by its process."""
        lost = self.lost.get(remembered.processes.pid)
        return self.containers.get(container_id) or lost

    async def wait_exit(self, container_id: ContainerId, processes: Processes, *, cgroup_path: str = "") -> ExitFact:
        container = self._known(container_id, Remembered(processes=processes))
        if container is None:
            return ExitFact(exit_code=255, finished_at=self._now_ns(), reason="ContainerStatusUnknown")
        await container.ended.wait()
        await self.faults.at("end_remaining")
        container.others = 0
        if container_id not in self.containers:
            return ExitFact(exit_code=255, finished_at=self._now_ns(), reason="ContainerStatusUnknown")
        assert container.fact is not None
        return container.fact

    async def state(self, container_id: ContainerId, handler: str) -> str:
        container = self.containers.get(container_id)
        return container.state if container else ""

    async def delete(self, container_id: ContainerId, handler: str, *, remembered: Remembered = NOTHING) -> None:
        await self.faults.at("delete")
        if container := self._known(container_id, remembered):
            self._end_of(container, 128 + signal.SIGKILL)
            self.containers.pop(container_id, None)
            self.lost.pop(container.processes.pid, None)
        self.half_made.discard(container_id)

    async def exec_sync(self, command: ExecCommand) -> ExecResult:
        container = self._find(command.id)
        await self.faults.at("exec_sync")
        if container.state in {"paused", "stopped"}:
            raise FailedPrecondition(f"exec: container {command.id} is {container.state}")
        if self.on_exec is not None:
            return self.on_exec(command)
        args = _args(msgspec.json.decode(command.process))
        _check_program(args, f"exec {args[0]}")
        if args[0] == "sleep":
            return await self._exec_for_ever(container, command)
        stdout, stderr = _output(args)
        return ExecResult(exit_code=_ends_with(args) or 0, stdout=stdout[:OUTPUT_LIMIT], stderr=stderr[:OUTPUT_LIMIT])

    async def end_commands(self, container_id: ContainerId) -> None:
        self.commands_ended.append(container_id)

    async def _exec_for_ever(self, container: FakeContainer, command: ExecCommand) -> ExecResult:
        if command.timeout_seconds is not None:
            raise DeadlineExceeded(f"exec sleep: no end within {command.timeout_seconds:g} s; killed")
        await container.ended.wait()
        return ExecResult(exit_code=128 + signal.SIGKILL, stdout=b"", stderr=b"")

    async def update(self, container_id: ContainerId, handler: str, resources: Resources) -> PutBack:
        container = self._find(container_id)
        await self.faults.at("update")
        given = {name for name in Resources.__struct_fields__ if getattr(resources, name)}
        former = container.limits
        container.resources.append(resources)
        container.limits = msgspec.structs.replace(
            container.limits, **{name: getattr(resources, name) for name in given}
        )

        async def put_back() -> None:
            container.limits = former

        return put_back

    async def pause(self, container_id: ContainerId, handler: str) -> None:
        await self._move(container_id, "pause", "running", "paused")

    async def resume(self, container_id: ContainerId, handler: str) -> None:
        await self._move(container_id, "resume", "paused", "running")

    async def _move(self, container_id: ContainerId, step: str, old: str, new: str) -> None:
        container = self._find(container_id)
        await self.faults.at(step)
        if container.state != old:
            raise FailedPrecondition(f"{step}: container {container_id} is {container.state}")
        container.state = new

    async def reopen_log(self, container_id: ContainerId) -> None:
        container = self._running(container_id, "reopen the log")
        await self.faults.at("reopen_log")
        container.log_openings += 1

    async def resize(self, container_id: ContainerId, width: int, height: int) -> None:
        container = self._running(container_id, "resize")
        await self.faults.at("resize")
        container.sizes.append((width, height))

    def _running(self, container_id: ContainerId, step: str) -> FakeContainer:
        container = self._find(container_id)
        if container.state == "stopped":
            raise FailedPrecondition(f"{step}: the container's monitor has ended")
        return container

    async def bundle_spec(self, container_id: ContainerId) -> bytes:
        return self._find(container_id).launch.spec

    async def present(self) -> frozenset[ContainerId]:
        return frozenset(self.containers) | frozenset(self.half_made)

    async def features(self, handler: str) -> HandlerFeatures:
        if handler not in self.handlers:
            raise InvalidInput(f"runtime handler: {handler!r} is not configured")
        return self.features_by_handler.get(handler, HandlerFeatures(name=handler, version="1.0.0"))

    async def monitor_obstacle(self) -> str:
        return self.monitor_reason

    async def versions(self) -> dict[str, str]:
        return {**{handler: f"{handler} version 1.0.0" for handler in self.handlers}, "monitor": "conmon version 2.0.0"}


def _check_program(args: list[str], step: str) -> None:
    if "missing" in args[0]:
        raise InvalidInput(f'{step}: exec: "{args[0]}": executable file not found in $PATH')


def _script(args: list[str]) -> str:
    return args[2] if args[:2] == ["sh", "-c"] and len(args) > 2 else ""


def _ends_with(args: list[str]) -> int | None:
    """The exit code of a program that ends by itself."""
    if found := re.search(r"(?:^|; )exit (\d+)$", _script(args)):
        return int(found.group(1))
    if found := re.fullmatch(r"kill -(\d+) \$\$", _script(args)):
        return 128 + int(found.group(1))
    return {"true": 0, "false": 1, "echo": 0, "head": 0}.get(args[0])


def _reaction(container: FakeContainer, number: int) -> int | None:
    """The exit code that a signal brings; None where the program goes on."""
    if number == signal.SIGKILL:
        return 128 + number
    if container.state != "running" or container.args[0] == "sleep":
        return None
    if found := re.search(r"trap 'exit (\d+)' TERM", _script(container.args)):
        return int(found.group(1)) if number == signal.SIGTERM else None
    return 128 + number if number == signal.SIGTERM else None


def _output(args: list[str]) -> tuple[bytes, bytes]:
    if args[0] == "echo":
        return (" ".join(args[1:]) + "\n").encode(), b""
    if args[0] == "head":
        return bytes(int(args[2])), b""
    script = _script(args)
    said = [b"", b""]
    for words, to_stderr in re.findall(r"echo (\w+)( >&2)?", script):
        said[bool(to_stderr)] += words.encode() + b"\n"
    return said[0], said[1]
