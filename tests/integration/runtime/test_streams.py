"""What only real commands and the real monitor can show of streams: volume, slowness, what is left behind (root)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.host import pidfd
from isulad_py.host.descriptors import PIPE_BYTES
from isulad_py.model.errors import ResourceExhausted
from isulad_py.ports.streams import ByteSink, ByteSource
from tests.stand.runtimes import HANDLER, RUNTIMES
from tests.stand.streams import MIB, Bed, feed, is_pending, read_all, real_bed

pytestmark = pytest.mark.root


@pytest.fixture(params=RUNTIMES)
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    async with real_bed(tmp_path, request.param) as made:
        yield made


def unique_seconds() -> str:
    return str(10**6 + int.from_bytes(os.urandom(4)))


async def found(*args: str) -> dict[int, int]:
    while not (processes := pidfd.find_by_arguments(args)):
        await asyncio.sleep(0.002)
    return processes


async def test_a_hundred_megabytes_in_and_out(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "cat", stdin=True, stdout=True, stderr=True)
    sent, got = hashlib.sha256(), hashlib.sha256()

    async def give() -> None:
        assert session.stdin
        block = os.urandom(MIB)
        for _ in range(100):
            sent.update(block)
            await session.stdin.write(block)
        await session.stdin.close()

    async def take() -> None:
        assert session.stdout
        while data := await session.stdout.read(256 * 1024):
            got.update(data)

    await asyncio.gather(give(), take())
    assert sent.digest() == got.digest()
    assert await session.wait() == 0


async def test_a_command_whose_output_is_not_read_stands_still(bed: Bed) -> None:
    container_id, _ = await bed.running()
    size = 50_000_000 + int.from_bytes(os.urandom(2))
    session = await bed.exec(container_id, "head", "-c", str(size), "/dev/zero", stdout=True)
    (pid,) = await found("head", "-c", str(size))

    def written() -> int:
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        return int(fields["wchar"])

    while written() < PIPE_BYTES // 2:
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.1)
    assert written() <= PIPE_BYTES + 4096  # it wrote a little before it became this program
    assert len(await read_all(session.stdout)) == size
    assert await session.wait() == 0


@pytest.mark.parametrize("terminal", [False, True])
async def test_megabytes_before_a_sudden_end_all_arrive_at_a_slow_reader(bed: Bed, *, terminal: bool) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(
        container_id, "sh", "-c", "head -c 5000000 /dev/zero; kill -9 $$", stdout=True, terminal=terminal
    )
    assert session.stdout
    got = 0
    while data := await session.stdout.read(200_000):
        got += len(data)
        await asyncio.sleep(0.005)
    assert got == 5_000_000
    assert await session.wait() == 137


async def test_what_is_left_behind_stays_and_keeps_the_output_open(bed: Bed) -> None:
    container_id, _ = await bed.running()
    seconds = unique_seconds()
    session = await bed.exec(container_id, "sh", "-c", f"sleep {seconds} & echo started", stdout=True)
    assert session.stdout
    assert await session.wait() == 0
    assert await session.stdout.read(100) == b"started\n"
    assert await is_pending(asyncio.ensure_future(session.stdout.read(1)))
    await session.close()
    assert await found("sleep", seconds)


async def test_a_close_ends_what_hides_in_a_session_of_its_own(bed: Bed) -> None:
    container_id, _ = await bed.running()
    seconds = unique_seconds()
    script = f"setsid sleep {seconds} & (setsid sh -c 'sleep {seconds} & sleep {seconds}' &); sleep {seconds}"
    session = await bed.exec(container_id, "sh", "-c", script, stdin=True, stdout=True)
    while len(pidfd.find_by_arguments(["sleep", seconds])) < 4:
        await asyncio.sleep(0.002)
    await session.close()
    assert pidfd.find_by_arguments(["sleep", seconds]) == {}


async def test_a_key_that_interrupts(bed: Bed) -> None:
    container_id, _ = await bed.running()
    script = "trap 'echo caught; exit 9' INT; echo ready; while true; do sleep 0.01; done"
    session = await bed.exec(container_id, "sh", "-c", script, stdin=True, stdout=True, terminal=True)
    assert session.stdin
    assert session.stdout
    assert await session.stdout.read(100) == b"ready\r\n"
    await session.stdin.write(b"\x03")
    assert await read_all(session.stdout) == b"^Ccaught\r\n"
    assert await session.wait() == 9


async def test_a_terminal_that_is_closed_for_a_while(bed: Bed) -> None:
    container_id, _ = await bed.running()
    script = "echo first; exec <&- >&- 2>&-; sleep 0.3; echo again >/dev/tty; exit 8"
    session = await bed.exec(container_id, "sh", "-c", script, stdout=True, terminal=True)
    assert await read_all(session.stdout) == b"first\r\nagain\r\n"
    assert await session.wait() == 8


async def test_a_shell_is_hung_up_when_its_client_goes(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "sh", stdin=True, stdout=True, terminal=True)
    await session.close()
    assert await session.wait() in {128 + signal.SIGHUP, 128 + signal.SIGKILL}


async def test_the_log_is_whole_although_a_client_reads_nothing(bed: Bed, tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    script = "read x; yes 1234567890 | head -n 2000000; echo done; sleep 1000000"
    container = await bed.running("sh", "-c", script, stdin=True, log_path=str(log))
    idle = await bed.attach(container, stdin=True, stdout=True, stderr=True)
    assert idle.stdin
    assert idle.stdout
    await idle.stdin.write(b"\n")
    while not log.exists() or b" F done\n" not in log.read_bytes()[-200:]:
        await asyncio.sleep(0.02)
    lines = [line.split(b" ", 3) for line in log.read_bytes().splitlines()]
    text = b"".join(content + (b"\n" if tag == b"F" else b"") for _, _, tag, content in lines)
    assert text == b"1234567890\n" * 2_000_000 + b"done\n"
    with pytest.raises(ResourceExhausted):
        await idle.stdout.read(1)


async def test_an_end_is_seen_although_a_client_is_slow(bed: Bed) -> None:
    container = await bed.running("sh", "-c", f"read x; head -c {2 * MIB} /dev/zero; exit 7", stdin=True)
    client = await bed.attach(container, stdin=True, stdout=True)
    assert client.stdin
    assert client.stdout
    await client.stdin.write(b"\n")
    waiting = asyncio.ensure_future(bed.runtime.wait_exit(*container))
    got = 0
    while not waiting.done():
        got += len(await client.stdout.read(20_000))
        await asyncio.sleep(0.005)
    assert (await waiting).exit_code == 7
    assert got + len(await read_all(client.stdout)) == 2 * MIB


async def test_megabytes_into_a_container(bed: Bed) -> None:
    container = await bed.running("sh", "-c", "cat; exit 3", stdin=True, stdin_once=True)
    writer = await bed.attach(container, stdin=True, stdout=True)
    other = await bed.attach(container, stdout=True)
    data = os.urandom(10 * MIB)
    _, back, seen = await asyncio.gather(feed(writer.stdin, data), read_all(writer.stdout), read_all(other.stdout))
    assert back == seen == data
    assert await writer.wait() == 3


async def test_a_resize_while_the_log_is_opened_anew(bed: Bed, tmp_path: Path) -> None:
    container = await bed.running(
        "sh", "-c", "while read x; do stty size; done", stdin=True, terminal=True, log_path=str(tmp_path / "0.log")
    )
    client = await bed.attach(container, stdin=True, stdout=True, terminal=True)
    assert client.stdin
    assert client.stdout
    sizes = [(number, number + 1) for number in range(10, 30)]
    await asyncio.gather(*(client.resize(*size) for size in sizes), bed.runtime.reopen_log(container[0]))
    await client.stdin.write(b"\n")
    said = b""
    while not said.endswith(b"30 29\r\n"):
        said += await client.stdout.read(1000)


async def test_dialling_leaves_no_thread(bed: Bed) -> None:
    async def hold(source: ByteSource, sink: ByteSink) -> None:
        await source.read(1)

    netns = await bed.listen(9000, hold)
    before = threading.active_count()
    connections = [await bed.streams.dial(netns, 9000) for _ in range(20)]
    assert threading.active_count() <= max(before, 16 + before)
    names = {thread.name for thread in threading.enumerate()}
    assert "netns" not in names
    for connection in connections:
        await connection.close()


async def test_a_container_that_is_removed_under_its_sessions(bed: Bed) -> None:
    container = await bed.running("cat", stdin=True)
    execs = [
        await bed.exec(container[0], "cat", stdin=True, stdout=True, terminal=terminal) for terminal in (False, True)
    ]
    attached = await bed.attach(container, stdin=True, stdout=True)
    sessions = (*execs, attached)
    waiting = [asyncio.ensure_future(session.wait()) for session in sessions]
    await bed.runtime.delete(container[0], HANDLER)
    for session in sessions:
        assert await read_all(session.stdout) == b""
    assert await asyncio.gather(*waiting) == [137, 137, 137]
    for session in sessions:
        await session.close()
