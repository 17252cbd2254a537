"""The OCI runtimes and the monitor as programs: where they are, what they are, one call."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from isulad_py.host import blocking, mount_copies, process
from isulad_py.model.errors import DeadlineExceeded, EngineError, HostFailure, InvalidInput
from isulad_py.model.handlers import RuntimeHandler
from isulad_py.ports.runtime import HandlerFeatures
from isulad_py.runtime import runc
from isulad_py.runtime.layout import Layout

QUERY_SECONDS: Final = 10.0


class Call(Struct, frozen=True, kw_only=True):
    """One command of a runtime."""

    handler: str
    words: tuple[str, ...]
    step: str
    """What is being done, for the message of an error."""
    stdin: bytes | None = None


class Programs:
    def __init__(
        self,
        *,
        handlers: Mapping[str, RuntimeHandler],
        monitor: str,
        layout: Layout,
        command_seconds: float,
        side_tree: str = "",
    ) -> None:
        """`side_tree`: where a cgroup2 tree is mounted beside those of v1."""
        self._handlers = dict(handlers)
        self._monitor = monitor
        self._layout = layout
        self._seconds = command_seconds
        self._side_tree = side_tree
        self._versions: dict[str, tuple[tuple[int, int], runc.Version]] = {}
        self._features: dict[str, tuple[tuple[int, int], HandlerFeatures]] = {}

    @property
    def handlers(self) -> tuple[str, ...]:
        return tuple(self._handlers)

    def path(self, handler: str) -> str:
        """Absolute. HostFailure where the program is not installed, InvalidInput for a name nobody configured."""
        entry = self._entry(handler)
        return _find(entry.path or entry.name, f"runtime {handler}")

    def monitor_path(self) -> str:
        return _find(self._monitor, "monitor")

    def by_systemd(self, handler: str) -> bool:
        """Whether the runtime has systemd make its cgroups."""
        return self._entry(handler).systemd_cgroup

    def global_args(self, handler: str, log: str = "") -> list[str]:
        """Of the runtime, before the command."""
        return runc.global_args(self._entry(handler), self._layout.runtime_root(handler), log)

    @contextlib.asynccontextmanager
    async def begun(self, handler: str, *, folder: str = "/") -> AsyncIterator[tuple[str, ...]]:
        """The words that start the runtime's program, which is then in `folder` where it is not started straight.

        crun (1.8 to 1.27) refuses a host on which a cgroup2 tree beside those of v1 has controllers. It is started in a
        mount namespace without that tree, by nsenter(1): 1 ms for both.
        """
        path = self.path(handler)
        if not self._side_tree or (await self.version(handler)).family != "crun":
            yield (path,)
            return
        nsenter = _find("nsenter", f"runtime {handler} on a host with cgroups v1 and v2")
        fd = await blocking.run_to_end(mount_copies.without, self._side_tree)
        try:
            yield (nsenter, f"--mount=/proc/{os.getpid()}/fd/{fd}", f"--wd={folder}", path)
        finally:
            os.close(fd)

    def _entry(self, handler: str) -> RuntimeHandler:
        try:
            return self._handlers[handler]
        except KeyError:
            raise InvalidInput(f"runtime handler: {handler!r} is not configured") from None

    async def call(self, call: Call) -> bytes:
        """Its stdout. Raises what `runc.failure` makes of its error, DeadlineExceeded when it hangs."""
        args = (*self.global_args(call.handler), *call.words)
        try:
            async with self.begun(call.handler) as program:
                command = process.Command(argv=(*program, *args), stdin=call.stdin, timeout_seconds=self._seconds)
                done = await process.run(command)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{call.step}: the runtime gave no answer within {self._seconds:g} s") from error
        if done.returncode:
            raise runc.failure(call.step, runc.error_of(done.stderr) or f"exit status {done.returncode}")
        return done.stdout

    async def version(self, handler: str) -> runc.Version:
        """Asked for once, and again when the program has been replaced."""
        path = self.path(handler)
        known = self._versions.get(path)
        if known and known[0] == _stamp(path):
            return known[1]
        stamp = _stamp(path)
        done = await process.run(process.Command(argv=(path, "--version"), timeout_seconds=QUERY_SECONDS))
        version = runc.parse_version(done.check(f"ask runtime {handler} for its version").stdout)
        self._versions[path] = (stamp, version)
        return version

    async def monitor_version(self) -> str:
        done = await process.run(
            process.Command(argv=(self.monitor_path(), "--version"), timeout_seconds=QUERY_SECONDS)
        )
        return runc.parse_version(done.check("ask the monitor for its version").stdout).text

    async def features(self, handler: str) -> HandlerFeatures:
        """OCI runtime spec, features.md; nothing where the runtime has no such command."""
        path = self.path(handler)
        known = self._features.get(handler)
        if known and known[0] == _stamp(path):
            return known[1]
        stamp = _stamp(path)
        version = await self.version(handler)
        done = await process.run(process.Command(argv=(path, "features"), timeout_seconds=QUERY_SECONDS))
        features = runc.parse_features(handler, version, done.stdout)
        self._features[handler] = (stamp, features)
        return features

    async def versions(self) -> dict[str, str]:
        """Of every handler and the monitor, as far as they can be told; else the reason."""
        found: dict[str, str] = {}
        for handler in self._handlers:
            try:
                found[handler] = (await self.version(handler)).text
            except EngineError as error:
                found[handler] = str(error)
        try:
            found["monitor"] = await self.monitor_version()
        except EngineError as error:
            found["monitor"] = str(error)
        return found


def _find(name: str, what: str) -> str:
    path = shutil.which(name, path=process.PATH)
    if path is None:
        raise HostFailure(f"{what}: no such program: {name}")
    return path


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = Path(path).stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
