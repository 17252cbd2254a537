"""ExecSync: a command's output and exit code (see `command` for its start and end)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final

from isulad_py.host import descriptors
from isulad_py.host.collected import collected
from isulad_py.model.errors import DeadlineExceeded
from isulad_py.ports.runtime import ExecCommand, ExecResult
from isulad_py.runtime.command import Commands, Order, Stdio, name_of

OUTPUT_LIMIT: Final = 16 * 1024 * 1024
"""Of each stream (CRI, ExecSync, as containerd and CRI-O have it)."""


async def exec_sync(commands: Commands, command: ExecCommand) -> ExecResult:
    """The command's output and exit code, 128+n where a signal ended it.

    Raises what the runtime says where the command cannot be run, DeadlineExceeded when its time is over and its
    processes have ended.
    """
    with contextlib.ExitStack() as scope:
        output = scope.enter_context(collected(OUTPUT_LIMIT))
        # Not the host's /dev/null: crun before 1.24 gives that to the command's user.
        given = scope.enter_context(contextlib.ExitStack())
        stdin = descriptors.empty_input()
        given.callback(os.close, stdin)

        def release() -> None:
            given.close()
            output.release()

        async def words() -> bytes:
            await output.drain()
            return output.stderr()

        stdio = Stdio(fds=(stdin, *output.fds), release=release, words=words)
        order = Order(id=command.id, handler=command.handler, process=command.process, stdio_uid=command.stdio_uid)
        try:
            async with asyncio.timeout(command.timeout_seconds), commands.started(order, stdio) as running:
                code = await running.wait()
                await output.drain()
        except TimeoutError as error:
            late = f"exec {name_of(command.process)}: no end within {command.timeout_seconds:g} s; killed"
            raise DeadlineExceeded(late) from error
        return ExecResult(exit_code=code, stdout=output.stdout(), stderr=output.stderr())
