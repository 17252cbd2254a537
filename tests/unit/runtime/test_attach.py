"""Attaching, with a monitor's socket that the test serves."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from isulad_py.model.container import Processes
from isulad_py.model.errors import FailedPrecondition, NotFound, ResourceExhausted, Unavailable
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.streams import StreamWishes
from isulad_py.runtime import attach
from isulad_py.runtime.adapter import OciRuntime
from isulad_py.runtime.attach import Attached, Attachments
from tests.fakes.oci_programs import SimulatedPrograms, launch


@dataclass
class Bed:
    runtime: OciRuntime
    attachments: Attachments
    bundles: Path
    listening: list[socket.socket] = field(default_factory=list)
    accepted: list[socket.socket] = field(default_factory=list)

    async def container(self, **changes: bool) -> tuple[ContainerId, Processes]:
        wanted = msgspec.structs.replace(launch(["sleep", "1000"]), **changes)
        processes = await self.runtime.create(wanted)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.append(listening)
        folder = os.open(self.bundles / wanted.id, os.O_PATH)
        listening.bind(f"/proc/self/fd/{folder}/attach")
        os.close(folder)
        listening.listen()
        listening.setblocking(False)
        return wanted.id, processes

    async def attach(self, container: tuple[ContainerId, Processes], **wishes: bool) -> tuple[Attached, socket.socket]:
        attached = await self.attachments.open(*container, StreamWishes(**wishes))
        monitor, _ = self.listening[-1].accept()
        monitor.setblocking(False)
        self.accepted.append(monitor)
        return attached, monitor


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    runtime = SimulatedPrograms(tmp_path).adapter()
    made = Bed(runtime, runtime.streams()._attachments, tmp_path / "state/containers")
    yield made
    for opened in (*made.listening, *made.accepted):
        opened.close()
    for container_id in await runtime.present():
        await runtime.delete(container_id, "runc")
    made.attachments.close()


async def test_streams_that_were_asked_for(bed: Bed) -> None:
    attached, monitor = await bed.attach(await bed.container(stdin=True), stdin=True, stdout=True, stderr=True)
    monitor.send(b"\x02out")
    monitor.send(b"\x03err")
    assert attached.stdin
    assert attached.stdout
    assert attached.stderr
    assert await attached.stdout.read(10) == b"out"
    assert await attached.stderr.read(10) == b"err"
    await attached.stdin.write(bytes(20_000))
    assert [len(monitor.recv(65536)) for _ in range(3)] == [8192, 8192, 20_000 - 16_384]
    await attached.stdin.close()
    assert monitor.recv(10) == b""
    monitor.send(b"\x02 more")
    assert await attached.stdout.read(10) == b" more"
    await attached.close()
    await attached.close()
    with pytest.raises(Unavailable):
        await attached.stdin.write(b"x")


async def test_a_container_made_without_input(bed: Bed) -> None:
    attached, monitor = await bed.attach(await bed.container(), stdin=True)
    assert attached.stdin
    assert attached.stdout is attached.stderr is None
    with pytest.raises(Unavailable, match="without"):
        await attached.stdin.write(b"x")
    await attached.stdin.close()
    with pytest.raises(BlockingIOError):
        monitor.recv(10)
    await attached.close()
    assert monitor.recv(10) == b""


async def test_nobody_to_attach_to(bed: Bed) -> None:
    with pytest.raises(NotFound):
        await bed.attachments.open(ContainerId(new_id()), Processes(), StreamWishes(stdout=True))
    container_id, processes = await bed.container()
    bed.listening[-1].close()
    with pytest.raises(FailedPrecondition):
        await bed.attachments.open(container_id, processes, StreamWishes(stdout=True))


def sees_the_end(monitor: socket.socket) -> bool:
    try:
        return monitor.recv(10) == b""
    except BlockingIOError:
        return False


async def test_a_watcher_of_a_one_session_input_leaves_silently(bed: Bed) -> None:
    container = await bed.container(stdin=True, stdin_once=True)
    watching, monitor = await bed.attach(container, stdout=True)
    await watching.close()
    assert not sees_the_end(monitor)
    with pytest.raises(BrokenPipeError):
        monitor.send(b"\x02nobody takes this")
    writing, other = await bed.attach(container, stdin=True)
    await writing.close()
    assert sees_the_end(other)
    await bed.runtime.delete(container[0], "runc")
    while not sees_the_end(monitor):
        await asyncio.sleep(0)


async def test_what_the_monitor_has_ended_is_let_go(bed: Bed) -> None:
    watching, monitor = await bed.attach(await bed.container(stdin=True, stdin_once=True), stdout=True)
    monitor.close()
    assert watching.stdout
    assert await watching.stdout.read(1) == b""
    await watching.close()


async def test_watchers_that_are_kept_are_few(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "KEPT_LIMIT", 2)
    container = await bed.container(stdin=True, stdin_once=True)
    for _ in range(2):
        await (await bed.attach(container, stdout=True))[0].close()
    with pytest.raises(ResourceExhausted, match="2 clients"):
        await bed.attach(container, stdout=True)
    await (await bed.attach(container, stdin=True))[0].close()


@pytest.mark.parametrize(("terminal", "stdin_once"), [(True, True), (False, False)])
async def test_other_watchers_just_leave(bed: Bed, *, terminal: bool, stdin_once: bool) -> None:
    container = await bed.container(stdin=True, stdin_once=stdin_once, terminal=terminal)
    watching, monitor = await bed.attach(container, stdout=True)
    await watching.close()
    assert sees_the_end(monitor)


async def test_a_size_goes_to_the_monitor_where_there_is_a_terminal(bed: Bed) -> None:
    for terminal in (False, True):
        container_id, processes = await bed.container(terminal=terminal)
        control = bed.bundles / container_id / "ctl"
        os.mkfifo(control)
        fifo = os.open(control, os.O_RDONLY | os.O_NONBLOCK)
        attached, _ = await bed.attach((container_id, processes), stdout=True, terminal=terminal)
        resizing = asyncio.ensure_future(attached.resize(80, 24))
        await asyncio.wait([resizing], timeout=0.01)
        assert os.read(fifo, 100) == (b"1 24 80\n" if terminal else b"")
        await resizing
        await attached.close()
        os.close(fifo)


async def test_the_end_of_the_container(bed: Bed) -> None:
    container_id, processes = await bed.container()
    attached, _ = await bed.attach((container_id, processes), stdout=True)
    await bed.runtime.kill(container_id, "runc", 9)
    assert await attached.wait() == 137
    await attached.close()
