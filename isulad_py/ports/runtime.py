"""The OCI runtime together with the per-container monitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from isulad_py.model.container import ExitFact, Processes
from isulad_py.model.ids import ContainerId
from isulad_py.model.resources import Resources


class Launch(Struct, frozen=True, kw_only=True):
    """What `create` needs beyond the OCI spec."""

    id: ContainerId
    handler: str
    """A name in the configured runtimes."""
    spec: bytes
    """OCI runtime spec as JSON; becomes the bundle's config.json."""
    log_path: str = ""
    """Absolute path of the CRI-format log; empty for none. Its directory is created."""
    terminal: bool = False
    stdin: bool = False
    stdin_once: bool = False
    stdio_uid: int | None = None
    """The host's number of who is to own the pipes of its stdio, where the runtime cannot see to that itself: in a user
    namespace."""
    restore: str = ""
    """Directory of a checkpoint's images. The container is restored from them instead of created: it runs at once."""
    monitor_cgroup: str = ""
    """cgroup (as in `ContainerRecord.cgroup_path`) that the monitor joins, so that it is accounted to the pod."""


class Remembered(Struct, frozen=True, kw_only=True):
    """What the engine knows of a container by itself: for a runtime whose own notes are gone (its state directory was
    lost while the container ran)."""

    processes: Processes = Processes()
    """Empty where they cannot live any more: after a reboot their numbers may be those of others."""
    cgroup_path: str = ""
    """As in `ContainerRecord`."""


NOTHING = Remembered()

PutBack: TypeAlias = Callable[[], Awaitable[None]]
"""Makes things as they were before."""


class ExecCommand(Struct, frozen=True, kw_only=True):
    """A process to run in a running container (OCI runtime spec, process)."""

    id: ContainerId
    handler: str
    process: bytes
    """OCI `process` object as JSON, made from the container's own by `spec`."""
    timeout_seconds: float | None = None
    """None waits for ever."""
    stdio_uid: int | None = None
    """As that of `Launch`."""


class ExecResult(Struct, frozen=True, kw_only=True):
    exit_code: int
    stdout: bytes
    stderr: bytes
    """Each cut at 16 MiB."""


class HandlerFeatures(Struct, frozen=True, kw_only=True):
    """What one runtime can do, from its `features` command; all false where it has none."""

    name: str
    version: str = ""
    recursive_read_only_mounts: bool = False
    user_namespaces: bool = False
    idmap_mounts: bool = False
    """Bind mounts with owners mapped: without, a pod with users of its own could not read its volumes."""
    reads_id_maps: bool = False
    """Of a user namespace that is joined by its path, and wants no others beside it."""
    seccomp: bool = False
    apparmor: bool = False
    checkpoint: bool = False
    oci_version_max: str = ""


class ContainerRuntime(Protocol):
    """Every method raises NotFound for a container the runtime does not know (unless said), HostFailure with the
    runtime's own words when it refuses, DeadlineExceeded when it hangs. Cancellation leaves no process behind."""

    async def create(self, launch: Launch) -> Processes:
        """Writes the bundle and runs monitor and runtime `create`. On failure nothing is left behind."""
        ...

    async def start(self, container_id: ContainerId, handler: str) -> None:
        """The container runs its own program then, or has ended: a signal is for that program to answer."""
        ...

    async def kill(
        self,
        container_id: ContainerId,
        handler: str,
        signal: int,
        *,
        everyone: bool = False,
        remembered: Remembered = NOTHING,
    ) -> None:
        """Success when the process has already ended."""
        ...

    async def wait_exit(self, container_id: ContainerId, processes: Processes, *, cgroup_path: str = "") -> ExitFact:
        """Returns when the container has ended, also for one that a former daemon created; at once if it has. Nothing
        of it runs then: what its first process left in the container's own cgroup is ended. HostFailure where that
        survives SIGKILL. `cgroup_path` as in `Remembered`.

        The exit code is the monitor's; where no monitor could record it (killed, reboot) reason is
        `ContainerStatusUnknown` and the code 255. A process that cannot be started at all is told by `start`.
        """
        ...

    async def state(self, container_id: ContainerId, handler: str) -> str:
        """Its own word: creating, created, running, stopped, paused; empty where it knows no such container."""
        ...

    async def delete(self, container_id: ContainerId, handler: str, *, remembered: Remembered = NOTHING) -> None:
        """Ends what still runs, the monitor included, and removes bundle, run directory and cgroup. Idempotent; works
        from the id alone, also for a half-made container. An empty `handler` is the one that it was made with."""
        ...

    async def exec_sync(self, command: ExecCommand) -> ExecResult:
        """Raises DeadlineExceeded after the whole process tree of the command has been ended."""
        ...

    async def end_commands(self, container_id: ContainerId) -> None:
        """Ends the commands that a former daemon was running in the container: who asked for them is gone. What a
        command that has ended left running may stay. Success for a container that is not known."""
        ...

    async def update(self, container_id: ContainerId, handler: str, resources: Resources) -> PutBack:
        """Sets what is given, all of it or, where anything fails, nothing. Returns what makes it all as it was before,
        each process's own score too. FailedPrecondition for a memory limit below what is in use."""
        ...

    async def pause(self, container_id: ContainerId, handler: str) -> None: ...

    async def resume(self, container_id: ContainerId, handler: str) -> None: ...

    async def reopen_log(self, container_id: ContainerId) -> None:
        """The new file exists when this returns. FailedPrecondition or ResourceExhausted naming the path where it
        cannot be made; what the container writes then goes on to where it went before."""
        ...

    async def resize(self, container_id: ContainerId, width: int, height: int) -> None: ...

    async def bundle_spec(self, container_id: ContainerId) -> bytes:
        """The bundle's config.json; NotFound where there is none."""
        ...

    async def present(self) -> frozenset[ContainerId]:
        """Ids with a bundle or run directory on disk: what recovery compares with the records."""
        ...

    async def features(self, handler: str) -> HandlerFeatures: ...

    async def monitor_obstacle(self) -> str:
        """Why no container can be given a monitor, in a few words; empty where it can."""
        ...

    async def versions(self) -> dict[str, str]:
        """Of runtime handlers and monitor, by name, for Status."""
        ...
