"""Commands with streams, with a simulated runtime: commands are plain processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.model.errors import HostFailure, InvalidInput, NotFound
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.streams import ByteSource, StreamingExec, StreamWishes
from isulad_py.runtime.exec_streams import ExecStreams, StreamingExecs
from tests.fakes.oci_programs import SimulatedPrograms, launch


@dataclass
class Bed:
    execs: StreamingExecs
    id: ContainerId
    bundle: Path

    async def open(self, *args: str, **wishes: bool) -> ExecStreams:
        document = json.dumps({"args": args, "terminal": wishes.get("terminal", False)}).encode()
        command = StreamingExec(id=self.id, handler="runc", process=document, wishes=StreamWishes(**wishes))
        return await self.execs.open(command)


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    runtime = SimulatedPrograms(tmp_path).adapter()
    wanted = launch(["sleep", "1000"])
    await runtime.create(wanted)
    await runtime.start(wanted.id, "runc")
    bundle = tmp_path / "state/containers" / wanted.id
    files, descriptors = sorted(path.name for path in bundle.iterdir()), open_descriptors()
    yield Bed(runtime.streams()._execs, wanted.id, bundle)
    assert sorted(path.name for path in bundle.iterdir()) == files
    assert open_descriptors() == descriptors
    await runtime.delete(wanted.id, "runc")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def read_all(source: ByteSource | None) -> bytes:
    assert source
    parts = []
    while data := await source.read(65536):
        parts.append(data)
    return b"".join(parts)


async def test_pipes_for_what_was_wished(bed: Bed) -> None:
    streams = await bed.open("sh", "-c", "cat; echo err >&2; exit 3", stdin=True, stdout=True, stderr=True)
    assert streams.stdin
    await streams.stdin.write(b"in and ")
    await streams.stdin.write(b"out")
    await streams.stdin.close()
    assert await read_all(streams.stdout) == b"in and out"
    assert await read_all(streams.stderr) == b"err\n"
    assert await streams.wait() == 3
    await streams.resize(80, 24)
    await streams.close()
    await streams.close()


async def test_a_terminal(bed: Bed) -> None:
    streams = await bed.open(
        "sh", "-c", "read x; stty size; tty >/dev/null && exit 5", stdin=True, stdout=True, terminal=True
    )
    assert streams.stdin
    assert streams.stderr is None
    await streams.resize(123, 45)
    await streams.stdin.write(b"\n")
    assert await read_all(streams.stdout) == b"\r\n45 123\r\n"
    assert await streams.wait() == 5
    await streams.close()


async def test_a_terminal_whose_output_nobody_wants(bed: Bed) -> None:
    streams = await bed.open("sh", "-c", "head -c 500000 /dev/zero; exit 6", stdin=True, terminal=True)
    assert streams.stdout is None
    assert await streams.wait() == 6
    await streams.close()


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_close_ends_the_whole_tree(bed: Bed, *, terminal: bool) -> None:
    seconds = str(10**6 + int.from_bytes(os.urandom(4)))
    streams = await bed.open("sh", "-c", f"sleep {seconds} & sleep {seconds}", stdout=True, terminal=terminal)
    while len(pidfd.find_by_arguments(["sleep", seconds])) < 2:
        await asyncio.sleep(0)
    closing = [asyncio.ensure_future(streams.close()) for _ in range(2)]
    await asyncio.wait(closing)
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}
    assert await streams.wait() == 137  # not 129: a terminal is hung up when nothing is left that could outlive that


@pytest.mark.parametrize("terminal", [False, True])
async def test_cancelled_while_it_starts_it_leaves_nothing(bed: Bed, *, terminal: bool) -> None:
    seconds = str(10**6 + int.from_bytes(os.urandom(4)))
    for steps in range(0, 60, 3):
        opening = asyncio.ensure_future(bed.open("sleep", seconds, stdin=True, stdout=True, terminal=terminal))
        for _ in range(steps):
            await asyncio.sleep(0.002)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).close()
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_a_cancelled_close_is_finished(bed: Bed) -> None:
    seconds = str(10**6 + int.from_bytes(os.urandom(4)))
    streams = await bed.open("sleep", seconds, stdout=True)
    closing = asyncio.ensure_future(streams.close())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


@pytest.mark.parametrize("terminal", [False, True])
async def test_what_cannot_be_started(bed: Bed, *, terminal: bool) -> None:
    with pytest.raises(InvalidInput, match=r"exec missing: .*not found"):
        await bed.open("missing", stdin=True, stdout=True, stderr=True, terminal=terminal)
    bed.id = ContainerId(new_id())
    with pytest.raises(NotFound):
        await bed.open("true", stdout=True, terminal=terminal)


async def test_a_runtime_that_keeps_the_terminal(bed: Bed, tmp_path: Path) -> None:
    """One that says it has started the command, and has not sent what the command writes to."""
    seconds = str(10**6 + int.from_bytes(os.urandom(4)))
    program = tmp_path / "runtime"
    whole = program.read_text()
    deaf = 'for word; do shift; [ "$word" = --console-socket ] && word=--unknown; set -- "$@" "$word"; done\nexec '
    program.write_text(whole.replace("exec ", deaf, 1))
    with pytest.raises(HostFailure, match="terminal"):
        await bed.open("sleep", seconds, stdout=True, terminal=True)
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}
    program.write_text(whole)
