"""One plugin call: find the binary, run it, tell its answer from its failure (CNI spec, section 2)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from isulad_py.host import process
from isulad_py.model.errors import DeadlineExceeded, EngineError, HostFailure, Unavailable
from isulad_py.network import result

OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
GRACE_SECONDS: Final = 2.0
_LAST_WORDS_BYTES: Final = 2000


Measure = Callable[[str, str], AbstractContextManager[None]]
"""Times what is done inside, by room and operation."""


class PluginCall(Struct, frozen=True, kw_only=True):
    """What one start of a plugin is told."""

    plugin: str
    command: str
    """ADD, DEL, CHECK, GC, STATUS or VERSION."""
    config: bytes
    """The request configuration (spec, section 3), given on stdin."""
    container_id: str = ""
    """Empty for the commands that concern no container."""
    netns: str = ""
    """Empty for DEL means that the namespace is gone."""
    ifname: str = ""
    args: str = ""

    def what(self) -> str:
        return f"plugin {self.plugin} ({self.command})"


class PluginInvoker(Protocol):
    """The way to plugins: a process, or later code of ours with the same results and the same files."""

    def identity(self, plugin: str) -> str:
        """Changes when the plugin behind the type changes; empty where there is none."""
        ...

    def absence(self, plugin: str) -> str:
        """The sentence that says where it was looked for."""
        ...

    async def invoke(self, call: PluginCall) -> bytes:
        """What the plugin printed. Raises HostFailure, DeadlineExceeded or Unavailable naming plugin and command."""
        ...


class ByType:
    """Implements PluginInvoker by other ones: those served in process by their type, and one for all the rest."""

    def __init__(self, *, served: Mapping[str, PluginInvoker], rest: PluginInvoker, measure: Measure) -> None:
        self._served = dict(served)
        self._rest = rest
        self._measure = measure

    def _of(self, plugin: str) -> PluginInvoker:
        return self._served.get(plugin, self._rest)

    def identity(self, plugin: str) -> str:
        return self._of(plugin).identity(plugin)

    def absence(self, plugin: str) -> str:
        return self._of(plugin).absence(plugin)

    async def invoke(self, call: PluginCall) -> bytes:
        with self._measure("network", f"{call.plugin} {call.command}"):
            return await self._of(call.plugin).invoke(call)


class ExecInvoker:
    """Implements PluginInvoker by the binary named like the plugin's type."""

    def __init__(self, *, bin_dirs: Sequence[str], timeout_seconds: float) -> None:
        self._bin_dirs = tuple(bin_dirs)
        self._timeout_seconds = timeout_seconds

    def identity(self, plugin: str) -> str:
        path = self.find(plugin)
        if path is None:
            return ""
        try:
            facts = os.stat(path)  # noqa: PTH116 - one call, no object
        except OSError:
            return ""
        return f"{path}:{facts.st_ino}:{facts.st_size}:{facts.st_mtime_ns}"

    def find(self, plugin: str) -> str | None:
        """The plugin's path, or None. The type is a file name (checked when parsed), so this cannot lead elsewhere."""
        for folder in self._bin_dirs:
            path = Path(folder, plugin)
            with contextlib.suppress(OSError):  # a name too long for this file system, a folder we may not enter
                if path.is_file() and os.access(path, os.X_OK):
                    return str(path)
        return None

    def absence(self, plugin: str) -> str:
        return f"plugin {plugin}: not found in {', '.join(self._bin_dirs)}"

    async def invoke(self, call: PluginCall) -> bytes:
        path = self.find(call.plugin)
        if path is None:
            raise HostFailure(self.absence(call.plugin))
        command = process.Command(
            argv=(path,),
            stdin=call.config,
            env=self._env(call),
            timeout_seconds=self._timeout_seconds,
            grace_seconds=GRACE_SECONDS,
            limit_bytes=OUTPUT_LIMIT_BYTES,
            new_session=True,  # a plugin runs others (host-local): they end with it
        )
        try:
            done = await process.run(command)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{call.what()}: no end within {self._timeout_seconds:g} s") from error
        except EngineError as error:
            raise type(error)(f"{call.what()}: {error}") from error
        if done.returncode != 0:
            _raise_failure(call, done)
            return b""
        if done.truncated:
            raise HostFailure(f"{call.what()}: printed more than {OUTPUT_LIMIT_BYTES} bytes")
        return done.stdout

    def _env(self, call: PluginCall) -> dict[str, str]:
        env = {"CNI_COMMAND": call.command, "CNI_PATH": ":".join(self._bin_dirs)}
        if call.container_id:
            env["CNI_CONTAINERID"] = call.container_id
            env["CNI_NETNS"] = call.netns
            env["CNI_IFNAME"] = call.ifname
            env["CNI_ARGS"] = call.args
        return env


def _raise_failure(call: PluginCall, done: process.Completed) -> None:
    """The plugin's own error object, or what else it left. Returns where a DEL had nothing to do (code 3)."""
    error = result.error_object(done.stdout)
    if error is None:
        ending = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
        last = (done.stderr.strip() or done.stdout.strip())[-_LAST_WORDS_BYTES:].decode(errors="replace")
        raise HostFailure(f"{call.what()}: {ending}{': ' if last else ''}{last}")
    if error.code == result.UNKNOWN_CONTAINER and call.command == "DEL":
        return
    kind = Unavailable if error.code == result.TRY_AGAIN_LATER else HostFailure
    raise kind(f"{call.what()}: {error.words()}")
