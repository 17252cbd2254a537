"""New user namespaces. The kernel lets only a process with a single thread enter one, so a program of the system does
it (unshare(1)); what it made is then pinned, or used, through the number of its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from isulad_py.host import blocking, namespaces, process
from isulad_py.host.failures import translated
from isulad_py.host.tasks import to_the_end
from isulad_py.model.errors import DeadlineExceeded, EngineError, HostFailure, InvalidInput, ResourceExhausted
from isulad_py.model.security import IdMapping, UserNamespace

START_SECONDS: Final = 30.0
_ECHO: Final = b"\n"
_WORDS_LIMIT: Final = 2000


@asynccontextmanager
async def held(users: UserNamespace, kinds: Sequence[str] = ()) -> AsyncIterator[int]:
    """The number of a process in a new user namespace with these ids, and in new namespaces of these `kinds` (net, ipc,
    uts) which belong to that. It ends with the block; if this daemon dies in it, at once.

    Raises HostFailure, ResourceExhausted where there are too many of them (user.max_user_namespaces), DeadlineExceeded.
    """
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        with theirs:
            # cat answers once it runs, which is after unshare has done its work, and ends when nobody holds our end.
            argv = ["unshare", "--user", *(f"--{kind}" for kind in kinds), "cat"]
            child = await process.start(argv, stdio=(theirs.fileno(),) * 3)
        try:
            await _until_inside(ours)
            await blocking.run(_write_maps, child.pid, users)
            yield child.pid
        finally:
            await to_the_end(child.end(0), name=f"end {child.pid}")


async def _until_inside(ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(START_SECONDS):
            with contextlib.suppress(ConnectionError):  # it has ended already: what did it say?
                await loop.sock_sendall(ours, _ECHO)
            said = await loop.sock_recv(ours, _WORDS_LIMIT)
    except TimeoutError as error:
        raise DeadlineExceeded(f"make a user namespace: not within {START_SECONDS:g} s") from error
    except ConnectionError:
        said = b""
    if said != _ECHO:
        words = said.decode(errors="replace").strip() or "the program ended without a word"
        kind = ResourceExhausted if os.strerror(28) in words else HostFailure
        raise kind(f"make a user namespace: {words}")


def _write_maps(pid: int, users: UserNamespace) -> None:
    for name, mappings in (("uid_map", users.uids), ("gid_map", users.gids)):
        with translated("map ids in"):
            Path(f"/proc/{pid}/{name}").write_text(_lines(mappings))  # one write(2), as the kernel wants it


def _lines(mappings: Sequence[IdMapping]) -> str:
    """user_namespaces(7), uid_map."""
    return "".join(f"{each.container_id} {each.host_id} {each.length}\n" for each in mappings)


async def create(request: namespaces.NewNamespaces, users: UserNamespace) -> None:
    """As `namespaces.create`, all owned by a new user namespace, which is pinned too."""
    pins = request.pins()
    async with held(users, [name for name, _, _ in pins if name != "user"]) as pid:
        try:
            left = await blocking.run_to_end(namespaces.adopt, request, pid)
            for name, value in left.items():
                await _write_as_root(pid, name, value)
        except BaseException as error:
            await to_the_end(_release([path for _, _, path in pins], error), name="release namespaces")
            raise


async def _release(paths: Sequence[str], cause: BaseException) -> None:
    for path in paths:
        try:
            await blocking.run(namespaces.release, path)
        except EngineError as failure:
            if isinstance(cause, EngineError):
                cause.cleanup.append(failure)


async def _write_as_root(pid: int, name: str, value: str) -> None:
    """Newer kernels let nobody but its own root set what belongs to an IPC namespace (ipc_namespaces(7))."""
    argv = ("nsenter", "--target", str(pid), "--user", "--ipc", "tee", namespaces.sysctl_path(name))
    done = await process.run(
        process.Command(argv=argv, stdin=value.encode(errors="surrogateescape"), timeout_seconds=START_SECONDS)
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition(": ")[2].lower()
        raise InvalidInput(f"sysctl {name}: the kernel does not take {value!r}: {reason}")
