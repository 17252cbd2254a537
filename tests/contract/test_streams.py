"""What every StreamRuntime does: the fake, and the real one (root) with runc or crun, conmon and network namespaces."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isulad_py.model.errors import (
    FailedPrecondition,
    InvalidInput,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from isulad_py.model.ids import ContainerId, new_id
from isulad_py.ports.streams import ByteSink, ByteSource
from tests.fakes.runtime import FakeRuntime
from tests.fakes.streams import FakeStreams
from tests.stand.runtimes import HANDLER, RUNTIMES
from tests.stand.streams import (
    FOR_EVER,
    MIB,
    STALL_SECONDS,
    Bed,
    Serve,
    binary,
    feed,
    is_pending,
    read_all,
    real_bed,
)


@pytest.fixture(params=["fake", *(pytest.param(name, marks=pytest.mark.root) for name in RUNTIMES)])
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    if request.param in RUNTIMES:
        async with real_bed(tmp_path, request.param) as made:
            yield made
        return
    runtime = FakeRuntime(handlers=(HANDLER,))
    streams = FakeStreams(runtime, patience_seconds=STALL_SECONDS)

    async def listen(port: int, serve: Serve, host: str = "") -> str:
        streams.listen("/fake/net", port, serve)
        return "/fake/net"

    made = Bed(runtime, streams, tmp_path, "/test", listen)
    yield made
    for session in made.sessions:
        await session.close()
    await streams.settle()


async def test_exec_parts_stdout_and_stderr_and_tells_the_code(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "sh", "-c", "echo out;echo err >&2;exit 3", stdout=True, stderr=True)
    assert session.stdin is None
    out, err = await asyncio.gather(read_all(session.stdout), read_all(session.stderr))
    assert (out, err, await session.wait()) == (b"out\n", b"err\n", 3)
    assert await session.wait() == 3


async def test_exec_has_no_streams_but_those_asked_for(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(
        container_id, "sh", "-c", "cat;head -c 300000 /dev/zero;echo err >&2;echo out", stderr=True
    )
    assert session.stdin is None
    assert session.stdout is None
    assert await read_all(session.stderr) == b"err\n"
    assert await session.wait() == 0


async def test_a_signal_is_128_and_its_number(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "sh", "-c", "kill -9 $$", stdout=True)
    assert await read_all(session.stdout) == b""
    assert await session.wait() == 137


async def test_any_bytes_go_through_until_the_half_close(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "cat", stdin=True, stdout=True)
    data = binary(4 * MIB)
    _, back = await asyncio.gather(feed(session.stdin, data), read_all(session.stdout))
    assert back == data
    assert await session.wait() == 0


async def test_output_can_be_read_after_the_end(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "head", "-c", "60000", "/dev/zero", stdout=True)
    assert await session.wait() == 0
    assert await read_all(session.stdout) == bytes(60000)


async def test_a_slow_reader_slows_the_command(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "head", "-c", str(4 * MIB), "/dev/zero", stdout=True)
    assert session.stdout
    waiting = asyncio.ensure_future(session.wait())
    got = 0
    for _ in range(3):
        got += len(await session.stdout.read(1000))
        assert await is_pending(waiting)
    assert got + len(await read_all(session.stdout)) == 4 * MIB
    assert await waiting == 0


async def test_input_that_nobody_reads_waits_and_then_fails(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, *FOR_EVER, stdin=True)
    assert session.stdin
    writing = asyncio.ensure_future(session.stdin.write(bytes(2 * MIB)))
    assert await is_pending(writing)
    await session.close()
    with pytest.raises(Unavailable):
        await writing


async def test_input_for_a_command_that_has_ended(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "true", stdin=True)
    assert await session.wait() == 0
    assert session.stdin
    with pytest.raises(Unavailable):
        await session.stdin.write(bytes(MIB))
    await session.stdin.close()


async def test_an_early_close_ends_the_command(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, *FOR_EVER, stdin=True, stdout=True)
    waiting, reading = asyncio.ensure_future(session.wait()), asyncio.ensure_future(read_all(session.stdout))
    assert await is_pending(waiting)
    await session.close()
    await session.close()
    assert await waiting == 137
    assert await reading == b""


async def test_a_close_amid_output(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "head", "-c", str(50 * MIB), "/dev/zero", stdout=True)
    assert session.stdout
    assert await session.stdout.read(10)
    await session.close()
    assert await session.wait() in {137, 141}


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_program_that_is_missing_is_named(bed: Bed, *, terminal: bool) -> None:
    container_id, _ = await bed.running()
    with pytest.raises(InvalidInput, match=r"exec missing: .*not found"):
        await bed.exec(container_id, "missing", stdin=True, stdout=True, terminal=terminal)


@pytest.mark.parametrize("terminal", [False, True])
async def test_exec_needs_a_container_that_runs(bed: Bed, *, terminal: bool) -> None:
    with pytest.raises(NotFound):
        await bed.exec(ContainerId(new_id()), "true", stdout=True, terminal=terminal)
    container_id, processes = await bed.running()
    await bed.runtime.pause(container_id, HANDLER)
    with pytest.raises(FailedPrecondition):
        await bed.exec(container_id, "true", stdout=True, terminal=terminal)
    await bed.runtime.resume(container_id, HANDLER)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    await bed.runtime.wait_exit(container_id, processes)
    with pytest.raises(FailedPrecondition):
        await bed.exec(container_id, "true", stdout=True, terminal=terminal)


async def test_exec_ends_with_its_container(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, *FOR_EVER, stdout=True)
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    assert await read_all(session.stdout) == b""
    assert await session.wait() == 137


async def test_twenty_execs_at_once(bed: Bed) -> None:
    container_id, _ = await bed.running()

    async def one(number: int) -> tuple[bytes, int]:
        session = await bed.exec(container_id, "sh", "-c", f"cat;exit {number}", stdin=True, stdout=True)
        data = os.urandom(200_000)
        _, back = await asyncio.gather(feed(session.stdin, data), read_all(session.stdout))
        code = await session.wait()
        await session.close()
        return back == data and data, code  # type: ignore[return-value]

    results = await asyncio.gather(*(one(number) for number in range(20)))
    assert [code for _, code in results] == list(range(20))
    assert all(same for same, _ in results)


async def test_a_terminal_has_one_output_and_a_size(bed: Bed) -> None:
    container_id, _ = await bed.running()
    script = "read x;stty size;echo err >&2;exit 4"
    session = await bed.exec(container_id, "sh", "-c", script, stdin=True, stdout=True, stderr=True, terminal=True)
    assert session.stdin
    assert session.stderr is None
    await session.resize(20, 10)
    await session.resize(123, 45)
    await session.stdin.write(b"\n")
    assert await read_all(session.stdout) == b"\r\n45 123\r\nerr\r\n"
    assert await session.wait() == 4
    await session.close()
    await session.resize(1, 1)


async def test_a_size_out_of_range(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, *FOR_EVER, stdout=True, terminal=True)
    with pytest.raises(InvalidInput, match="terminal size"):
        await session.resize(-1, 100_000)


async def test_without_a_terminal_a_size_is_ignored(bed: Bed) -> None:
    container_id, processes = await bed.running()
    await (await bed.exec(container_id, "true", stdout=True)).resize(80, 24)
    await (await bed.attach((container_id, processes), stdout=True)).resize(80, 24)


async def test_closing_the_input_of_a_terminal_ends_nothing(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "cat", stdin=True, stdout=True, terminal=True)
    assert session.stdin
    await session.stdin.close()
    assert await is_pending(asyncio.ensure_future(session.wait()))


async def test_a_terminal_that_nobody_reads(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "sh", "-c", "head -c 300000 /dev/zero;exit 5", stdin=True, terminal=True)
    assert session.stdout is None
    assert await session.wait() == 5


async def test_the_end_of_a_terminals_output_is_not_lost(bed: Bed) -> None:
    container_id, _ = await bed.running()
    session = await bed.exec(container_id, "head", "-c", str(2 * MIB), "/dev/zero", stdout=True, terminal=True)
    assert len(await read_all(session.stdout)) == 2 * MIB
    assert await session.wait() == 0


async def test_attached_clients_see_the_same_output_and_may_all_write(bed: Bed) -> None:
    container = await bed.running("cat", stdin=True)
    first = await bed.attach(container, stdin=True, stdout=True, stderr=True)
    second = await bed.attach(container, stdin=True, stdout=True)
    watching = await bed.attach(container, stdout=True)
    for client, word in ((first, b"one\n"), (second, b"two\n")):
        assert client.stdin
        await client.stdin.write(word)
        for each in (first, second, watching):
            assert each.stdout
            assert await each.stdout.read(100) == word
    assert second.stderr is None


async def test_detaching_harms_nothing(bed: Bed) -> None:
    container = await bed.running("cat", stdin=True)
    waiting = asyncio.ensure_future(bed.runtime.wait_exit(*container))
    for word in (b"one\n", b"two\n"):
        client = await bed.attach(container, stdin=True, stdout=True)
        assert client.stdin
        assert client.stdout
        await client.stdin.write(word)
        assert await client.stdout.read(100) == word
        await client.stdin.close()
        await client.close()
        await client.close()
        assert await client.stdout.read(100) == b""
        with pytest.raises(Unavailable):
            await client.stdin.write(b"x")
    assert await is_pending(waiting)
    waiting.cancel()


async def test_input_for_one_session_ends_with_it_and_not_with_watchers(bed: Bed) -> None:
    container = await bed.running("cat", stdin=True, stdin_once=True)
    for _ in range(3):
        watching = await bed.attach(container, stdout=True)
        await watching.close()
    client = await bed.attach(container, stdin=True, stdout=True)
    data = binary(2 * MIB)
    _, back = await asyncio.gather(feed(client.stdin, data), read_all(client.stdout))
    assert back == data
    assert await client.wait() == 0
    assert (await bed.runtime.wait_exit(*container)).exit_code == 0


async def test_a_client_that_leaves_ends_the_input_of_one_session(bed: Bed) -> None:
    container = await bed.running("cat", stdin=True, stdin_once=True)
    client = await bed.attach(container, stdin=True, stdout=True)
    await client.close()
    assert await client.wait() == 0


async def test_a_container_without_input(bed: Bed) -> None:
    container = await bed.running()
    client = await bed.attach(container, stdin=True, stdout=True)
    assert client.stdin
    with pytest.raises(Unavailable, match="without"):
        await client.stdin.write(b"x")
    await client.stdin.close()


async def test_a_client_that_reads_nothing_does_not_hold_the_container(bed: Bed) -> None:
    container = await bed.running("sh", "-c", f"read x;head -c {8 * MIB} /dev/zero;sleep 1000000", stdin=True)
    idle = await bed.attach(container, stdout=True)
    client = await bed.attach(container, stdin=True, stdout=True)
    assert client.stdin
    assert client.stdout
    assert idle.stdout
    await client.stdin.write(b"\n")
    got = 0
    while got < 8 * MIB:
        got += len(await client.stdout.read(MIB))
    with pytest.raises(ResourceExhausted, match="nothing was read"):
        await idle.stdout.read(1)
    await idle.close()


async def test_a_slow_client_gets_everything(bed: Bed) -> None:
    container = await bed.running("sh", "-c", f"read x;head -c {3 * MIB} /dev/zero;sleep 1000000", stdin=True)
    client = await bed.attach(container, stdin=True, stdout=True)
    assert client.stdin
    assert client.stdout
    await client.stdin.write(b"\n")
    got = 0
    while got < 3 * MIB:
        got += len(await client.stdout.read(100_000))
        await asyncio.sleep(0.01)
    assert got == 3 * MIB


async def test_attached_to_a_terminal(bed: Bed) -> None:
    container = await bed.running("sh", "-c", "read x;stty size;sleep 1000000", stdin=True, terminal=True)
    client = await bed.attach(container, stdin=True, stdout=True, stderr=True, terminal=True)
    assert client.stdin
    assert client.stdout
    assert client.stderr is None
    await client.resize(123, 45)
    await client.stdin.write(b"\n")
    said = b""
    while not said.endswith(b"45 123\r\n"):
        said += await client.stdout.read(100)


async def test_an_attached_client_learns_of_the_end(bed: Bed) -> None:
    container_id, processes = await bed.running()
    client = await bed.attach((container_id, processes), stdout=True, stderr=True)
    waiting = asyncio.ensure_future(client.wait())
    await bed.runtime.kill(container_id, HANDLER, signal.SIGKILL)
    assert await read_all(client.stdout) == await read_all(client.stderr) == b""
    assert await waiting == 137
    with pytest.raises(FailedPrecondition):
        await bed.attach((container_id, processes), stdout=True)
    await bed.runtime.delete(container_id, HANDLER)
    with pytest.raises(NotFound):
        await bed.attach((container_id, processes), stdout=True)


async def echo(source: ByteSource, sink: ByteSink) -> None:
    while data := await source.read(65536):
        await sink.write(data)
    await sink.write(b" and the end")
    await sink.close()


async def test_a_connection_goes_both_ways_with_half_closes(bed: Bed) -> None:
    netns = await bed.listen(8080, echo)
    connection = await bed.streams.dial(netns, 8080)
    data = binary(2 * MIB)
    _, back = await asyncio.gather(feed(connection.sink, data), read_all(connection.source))
    assert back == data + b" and the end"
    await connection.close()
    await connection.close()
    assert await connection.source.read(1) == b""


async def test_the_far_end_may_stop_first(bed: Bed) -> None:
    heard = asyncio.get_running_loop().create_future()

    async def speak_then_listen(source: ByteSource, sink: ByteSink) -> None:
        await sink.write(b"hello")
        await sink.close()
        heard.set_result(await read_all(source))

    connection = await bed.streams.dial(await bed.listen(8081, speak_then_listen), 8081)
    assert await read_all(connection.source) == b"hello"
    await connection.sink.write(b"late answer")
    await connection.sink.close()
    assert await heard == b"late answer"
    await connection.close()


async def test_a_port_where_nobody_listens(bed: Bed) -> None:
    netns = await bed.listen(8082, echo)
    with pytest.raises(Unavailable, match="port 8083: connection refused"):
        await bed.streams.dial(netns, 8083)
    for port in (0, 65536):
        with pytest.raises(InvalidInput, match="port"):
            await bed.streams.dial(netns, port)
    with pytest.raises(NotFound):
        await bed.streams.dial("/nowhere/net", 8082)


async def test_ipv6_where_ipv4_refuses(bed: Bed) -> None:
    connection = await bed.streams.dial(await bed.listen(8085, echo, "::1"), 8085)
    await connection.sink.close()
    assert await read_all(connection.source) == b" and the end"
    await connection.close()


async def test_many_connections_at_once(bed: Bed) -> None:
    async def greet(source: ByteSource, sink: ByteSink) -> None:
        await sink.write(b"hello")
        await sink.close()

    netns = await bed.listen(8084, greet)

    async def one() -> bytes:
        connection = await bed.streams.dial(netns, 8084)
        try:
            return await read_all(connection.source)
        finally:
            await connection.close()

    assert await asyncio.gather(*(one() for _ in range(100))) == [b"hello"] * 100
