from __future__ import annotations

import asyncio
import hashlib
import json
import os

import pytest

from isulad_py.model.errors import HostFailure
from isulad_py.ports.streams import StreamWishes
from isulad_py.streaming.limits import StreamLimits
from tests import spdy_peer
from tests.fakes.scripted_streams import ScriptedProcess
from tests.unit.streaming.stand import ALL, OUTPUT, TERMINAL, Stand


async def test_a_command_with_output(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("echo", "hello", wishes=OUTPUT))
    assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in client.head
    error, stdout, stderr = await client.opened("error", "stdout", "stderr")
    assert await stdout.read_all() == b"hello\n"
    assert await stderr.read_all() == b""
    assert json.loads(await error.read_all()) == {"metadata": {}, "status": "Success"}
    await client.close()


async def test_an_exit_code(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("sh", "-c", "exit 3", wishes=OUTPUT))
    error, *_ = await client.opened("error", "stdout", "stderr")
    assert json.loads(await error.read_all()) == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with exit code 3",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


@pytest.mark.parametrize("protocol", ["channel.k8s.io", "v2.channel.k8s.io", "v3.channel.k8s.io"])
async def test_older_clients_read_a_sentence(stand: Stand, protocol: str) -> None:
    for command, text in (("false", b"command terminated with exit code 1"), ("true", b"")):
        client = await stand.spdy(stand.exec_url(command, wishes=OUTPUT), protocol)
        error, *_ = await client.opened("error", "stdout", "stderr")
        assert await error.read_all() == text


async def test_a_command_that_cannot_be_started(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("missing", wishes=OUTPUT), "v5.channel.k8s.io")
    error, stdout, _ = await client.opened("error", "stdout", "stderr")
    status = json.loads(await error.read_all())
    assert (status["status"], status["reason"], status["code"]) == ("Failure", "InternalError", 500)
    assert "not found in $PATH" in status["message"]
    assert await stdout.read_all() == b""


async def test_a_container_that_stopped_meanwhile(stand: Stand) -> None:
    url = stand.exec_url("true", wishes=OUTPUT)
    stand.engine.change(stand.container, paused_at=1)
    client = await stand.spdy(url)
    error, *_ = await client.opened("error", "stdout", "stderr")
    assert "is paused, not running" in json.loads(await error.read_all())["message"]


async def test_input_goes_through_and_comes_back(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("cat"))
    error, stdin, stdout, _ = await client.opened("error", "stdin", "stdout", "stderr")
    data = os.urandom(5_000_000)
    for offset in range(0, len(data), 30_000):
        await stdin.write(data[offset : offset + 30_000])
    await stdin.close()
    assert hashlib.sha256(await stdout.read_all()).digest() == hashlib.sha256(data).digest()
    assert json.loads(await error.read_all())["status"] == "Success"
    assert stdin.ended.is_set(), "the client waits for our end of stdin too"


async def test_megabytes_before_an_immediate_exit(stand: Stand) -> None:
    async def burst(process: ScriptedProcess) -> int:
        await process.stdout.write(b"x" * 3_000_000)
        await process.stderr.write(b"y" * 100_000)
        return 0

    stand.runtime.programs["burst"] = burst
    client = await stand.spdy(stand.exec_url("burst", wishes=OUTPUT))
    error, stdout, stderr = await client.opened("error", "stdout", "stderr")
    await error.read_all()
    assert (len(await stdout.read_all()), len(await stderr.read_all())) == (3_000_000, 100_000)


async def test_a_client_that_does_flow_control(stand: Stand) -> None:
    async def burst(process: ScriptedProcess) -> int:
        await process.stdout.write(b"x" * 3_000_000)
        return 0

    stand.runtime.programs["burst"] = burst
    client = await stand.spdy(stand.exec_url("burst", wishes=StreamWishes(stdout=True)))
    client.updates_windows = True
    error, stdout = await client.opened("error", "stdout")
    assert len(await stdout.read_all()) == 3_000_000
    assert json.loads(await error.read_all())["status"] == "Success"
    assert not client.overrun


async def test_a_client_that_answers_no_ping(fresh: Stand) -> None:
    fresh.limits = StreamLimits(probe_seconds=0.01)
    await fresh.start()

    async def burst(process: ScriptedProcess) -> int:
        await process.stdout.write(b"x" * 300_000)
        return 0

    fresh.runtime.programs["burst"] = burst
    client = await fresh.spdy(fresh.exec_url("burst", wishes=StreamWishes(stdout=True)))
    _, stdout = await client.opened("error", "stdout")
    assert len(await stdout.read_all()) == 300_000
    assert await client.heard(spdy_peer.PING)


async def test_a_slow_client_slows_the_command(stand: Stand) -> None:
    async def flood(process: ScriptedProcess) -> int:
        for _ in range(400):
            await process.stdout.write(b"x" * 100_000)
        return 0

    stand.runtime.programs["flood"] = flood
    client = await stand.spdy(stand.exec_url("flood", wishes=StreamWishes(stdout=True)))
    error, stdout = await client.opened("error", "stdout")
    await client.send(client.peer.ping(1))
    client.may_read.clear()
    process = stand.process
    before = -1
    while process.stdout.passed != before:
        before = process.stdout.passed
        await asyncio.sleep(0.1)  # until nothing moves any more
    assert before < 30_000_000
    assert not process.ended.done()
    client.may_read.set()
    assert len(await stdout.read_all()) == 40_000_000
    assert json.loads(await error.read_all())["status"] == "Success"


async def test_a_command_that_takes_no_input_slows_the_client_and_resizes_all_the_same(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("sleep", "9", wishes=TERMINAL))
    _, stdin, _, resize = await client.opened("error", "stdin", "stdout", "resize")
    for _ in range(10):
        await stdin.write(b"x" * 50_000)
    await resize.write(b'{"Width":80,"Height":24}')
    await stand.process.resized.wait()
    assert stand.process.sizes == [(80, 24)]
    sending = asyncio.get_running_loop().create_task(stdin.write(bytes(40_000_000)))
    done, _ = await asyncio.wait({sending}, timeout=0.3)
    assert not done, "the socket takes no more"
    sending.cancel()
    await asyncio.wait({sending})


@pytest.mark.parametrize("size", [1_200_000, 40_000_000])
async def test_a_client_that_leaves_while_it_is_not_read_is_noticed(fresh: Stand, size: int) -> None:
    """The end of its connection comes behind what the kernels hold of its data, or cannot come at all."""
    fresh.limits = StreamLimits(watch_seconds=0.05)
    await fresh.start()
    client = await fresh.spdy(fresh.exec_url("sleep", "9", wishes=StreamWishes(stdin=True)))
    _, stdin = await client.opened("error", "stdin")
    sending = asyncio.get_running_loop().create_task(stdin.write(bytes(size)))
    await asyncio.wait({sending}, timeout=0.2)
    sending.cancel()
    await asyncio.wait({sending})
    await client.vanish()
    await fresh.process.ended
    assert fresh.process.killed


async def test_a_client_that_leaves_ends_the_command(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("sleep", "9", wishes=OUTPUT))
    await client.opened("error", "stdout", "stderr")
    while not stand.runtime.commands:
        await asyncio.sleep(0)
    await client.close()
    await stand.process.ended
    assert stand.process.killed
    assert stand.runtime.commands[-1].closed


async def test_input_after_the_command_has_closed_it_is_taken(stand: Stand) -> None:
    closed = asyncio.Event()

    async def deaf(process: ScriptedProcess) -> int:
        await process.stdin.break_()
        await closed.wait()
        return 7

    stand.runtime.programs["deaf"] = deaf
    client = await stand.spdy(stand.exec_url("deaf", wishes=StreamWishes(stdin=True)))
    error, stdin = await client.opened("error", "stdin")
    for _ in range(50):
        await stdin.write(b"x" * 100_000)
    closed.set()
    assert b'"7"' in await error.read_all()


async def test_output_held_open_by_a_child_does_not_hold_the_session(fresh: Stand) -> None:
    fresh.limits = StreamLimits(quiet_seconds=0.05)
    await fresh.start()

    async def daemonise(process: ScriptedProcess) -> int:
        process.leaves_child = True
        await process.stdout.write(b"started")
        return 0

    fresh.runtime.programs["daemonise"] = daemonise
    client = await fresh.spdy(fresh.exec_url("daemonise", wishes=OUTPUT))
    error, stdout, _ = await client.opened("error", "stdout", "stderr")
    assert await stdout.read_all() == b"started"
    assert json.loads(await error.read_all())["status"] == "Success"


async def test_an_output_stream_that_is_reset_stops_nothing(stand: Stand) -> None:
    go = asyncio.Event()

    async def chatty(process: ScriptedProcess) -> int:
        await go.wait()
        await process.stdout.write(bytes(500_000))
        return 5

    stand.runtime.programs["chatty"] = chatty
    client = await stand.spdy(stand.exec_url("chatty", wishes=OUTPUT))
    error, stdout, _ = await client.opened("error", "stdout", "stderr")
    await client.send(client.peer.pair(spdy_peer.RST_STREAM, stdout.number, 5))
    go.set()
    assert b'"5"' in await error.read_all()


async def test_streams_that_nobody_asked_for_are_refused(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("cat", wishes=StreamWishes(stdin=True, stdout=True)))
    streams = [await client.open(kind) for kind in ("error", "stderr", "data", "stdin", "stdin", "stdout")]
    for stream in streams:
        await stream.accepted.wait()
    assert [stream.reset for stream in streams] == [None, 3, 3, None, 3, None]
    late = await client.open("stdin")
    await late.accepted.wait()
    assert late.reset == 3
    await streams[3].close()
    assert json.loads(await streams[0].read_all())["status"] == "Success"


async def test_streams_that_do_not_come(fresh: Stand) -> None:
    fresh.limits = StreamLimits(creation_seconds=0.05)
    await fresh.start()
    client = await fresh.spdy(fresh.exec_url("cat"))
    await client.opened("error", "stdin")
    await client.closed.wait()
    assert fresh.runtime.commands == []


async def test_resizing_needs_v3(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("true", wishes=TERMINAL), "v2.channel.k8s.io")
    error, *_ = await client.opened("error", "stdin", "stdout")
    await error.read_all()


async def test_an_impossible_size_ends_the_session_with_its_reason(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("sleep", "9", wishes=TERMINAL))
    error, _, _, resize = await client.opened("error", "stdin", "stdout", "resize")
    await resize.write(b'{"Width":-1,"Height":24}')
    assert "resize" in json.loads(await error.read_all())["message"]
    assert stand.process.killed


async def test_a_terminal_that_cannot_be_resized_goes_on(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("cat", wishes=TERMINAL))
    error, stdin, stdout, resize = await client.opened("error", "stdin", "stdout", "resize")
    while not stand.runtime.commands:
        await asyncio.sleep(0)

    async def refuse(width: int, height: int) -> None:
        raise HostFailure("no terminal")

    stand.runtime.commands[-1].resize = refuse  # type: ignore[method-assign]  # a fault for this one call
    await resize.write(b'{"Width":80,"Height":24}')
    await stdin.write(b"on", fin=True)
    assert await stdout.read_all() == b"on"
    assert json.loads(await error.read_all())["status"] == "Success"


async def test_the_end_of_a_session_is_said_in_order(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("true", wishes=ALL))
    await client.opened("error", "stdin", "stdout", "stderr")
    await client.streams[1].ended.wait()
    assert not client.closed.is_set(), "the client leaves first"
    await client.close()
