"""A runtime with its streams, containers to stream to, servers in a network namespace; nothing is left at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isulad_py.host import blocking, namespaces
from isulad_py.host.clock import SystemClock
from isulad_py.host.descriptors import Sink, Source
from isulad_py.host.facts import read_facts
from isulad_py.model.container import Processes
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.runtime import ContainerRuntime, Launch
from isulad_py.ports.streams import ByteSink, ByteSource, StreamingExec, StreamRuntime, Streams, StreamWishes
from isulad_py.runtime.adapter import OciRuntime, Options
from isulad_py.runtime.attach_output import Patience
from tests.stand.cgroups import cgroups_named, remove_cgroup
from tests.stand.rootfs import make_rootfs, process, spec
from tests.stand.runtimes import HANDLER, handlers

FOR_EVER = ("sleep", "1000000")
MIB = 1024 * 1024
STALL_SECONDS = 0.2
Serve = Callable[[ByteSource, ByteSink], Coroutine[Any, Any, None]]


@dataclass
class Bed:
    """A runtime with its streams, and what its containers are made from."""

    runtime: ContainerRuntime
    streams: StreamRuntime
    root: Path
    cgroup_parent: str
    listen: Callable[..., Coroutine[Any, Any, str]]
    """A server on a port (and address) of a network namespace, whose path is the answer."""
    sessions: list[Streams] = field(default_factory=list)

    async def running(self, *args: str, **changes: Any) -> tuple[ContainerId, Processes]:
        container_id = ContainerId(new_id())
        document = spec(
            args or FOR_EVER,
            root=self.root,
            cgroup=f"{self.cgroup_parent}/{container_id}",
            terminal=changes.get("terminal", False),
        )
        launch = Launch(id=container_id, handler=HANDLER, spec=document, **changes)
        processes = await self.runtime.create(launch)
        await self.runtime.start(container_id, HANDLER)
        return container_id, processes

    async def exec(self, container_id: ContainerId, *args: str, **wishes: bool) -> Streams:
        document = json.dumps(process(args, terminal=wishes.get("terminal", False))).encode()
        command = StreamingExec(id=container_id, handler=HANDLER, process=document, wishes=StreamWishes(**wishes))
        self.sessions.append(await self.streams.open_exec(command))
        return self.sessions[-1]

    async def attach(self, container: tuple[ContainerId, Processes], **wishes: bool) -> Streams:
        self.sessions.append(await self.streams.open_attach(*container, StreamWishes(**wishes)))
        return self.sessions[-1]


def open_descriptors() -> Counter[str]:
    """How many of each kind. Their numbers do not tell: uvloop makes sockets of its own for each run."""
    kinds: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            kinds[str(entry.readlink()).partition(":[")[0]] += 1
    return kinds


def zombies() -> set[str]:
    """Of ours: whatever came to us since a bed was made must have been reaped. Other suites in this process, where no
    daemon sweeps, may have left some before."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            for pid in (task / "children").read_text().split():
                text = Path(f"/proc/{pid}/stat").read_text()
                if text.rpartition(")")[2].split()[0] == "Z":
                    found.add(text[:60])
    return found


@contextlib.asynccontextmanager
async def real_bed(path: Path, family: str) -> AsyncIterator[Bed]:
    parent = f"t{secrets.token_hex(6)}"
    # Longer than a socket's name may be.
    state = path / ("long-state-directory-" + "x" * 100)
    runtime = OciRuntime(
        handlers=handlers(family),
        facts=read_facts(),
        clock=SystemClock(),
        options=Options(state=str(state)),
    )
    streams = runtime.streams(patience=Patience(stall_seconds=STALL_SECONDS))
    netns, listening = path / "net", []
    await blocking.run(namespaces.create, namespaces.NewNamespaces(net_path=str(netns)))
    tasks: list[asyncio.Task[None]] = []

    async def listen(port: int, serve: Serve, host: str = "127.0.0.1") -> str:
        def make() -> socket.socket:
            return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)

        server = await namespaces.run_in_netns(str(netns), make)
        listening.append(server)
        server.setblocking(False)
        tasks.append(asyncio.ensure_future(_accept(server, serve)))
        return str(netns)

    bed = Bed(runtime, streams, make_rootfs(path / "rootfs"), f"/{parent}", listen)
    descriptors, dead = open_descriptors(), zombies()
    try:
        yield bed
        for session in bed.sessions:
            await session.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in listening:
            server.close()
        for container_id in await runtime.present():
            left = sorted(entry.name for entry in (state / "containers" / container_id).glob("exec-*"))
            assert left == [], "files of execs are left"
    finally:
        for container_id in await runtime.present():
            await runtime.delete(container_id, HANDLER)
        streams.close()
        namespaces.release(str(netns))
    assert open_descriptors() - descriptors == Counter()
    assert zombies() - dead == set()
    for folder in cgroups_named(parent, depth=1):
        assert not list(folder.glob("*/")), f"cgroups left in {folder}"
        assert remove_cgroup(folder)


async def _accept(server: socket.socket, serve: Serve) -> None:
    loop = asyncio.get_running_loop()
    while True:
        peer, _ = await loop.sock_accept(server)
        source = Source(os.dup(peer.fileno()))
        sink = Sink(os.dup(peer.fileno()), finish=lambda peer=peer: peer.shutdown(socket.SHUT_WR))  # type: ignore[misc]
        try:
            await serve(source, sink)
        finally:
            source.close()
            await sink.close()
            peer.close()


async def read_all(source: ByteSource | None) -> bytes:
    assert source is not None
    parts = []
    while data := await source.read(256 * 1024):
        parts.append(data)
    return b"".join(parts)


async def feed(sink: ByteSink | None, data: bytes) -> None:
    assert sink is not None
    for at in range(0, len(data), 100_000):
        await sink.write(data[at : at + 100_000])
    await sink.close()


async def is_pending(work: asyncio.Future[Any]) -> bool:
    await asyncio.wait([work], timeout=0.05)
    return not work.done()


def binary(size: int) -> bytes:
    return (bytes(range(256)) + os.urandom(65536 - 256)) * (size // 65536)
