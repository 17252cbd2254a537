from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os

import pytest

from isulad_py.ports.streams import StreamWishes
from isulad_py.streaming.channel_command import inputs
from isulad_py.streaming.limits import StreamLimits
from tests.fakes.scripted_streams import ScriptedProcess
from tests.unit.streaming.stand import ALL, OUTPUT, TERMINAL, Stand
from tests.websocket_client import channels, connected

SUBPROTOCOLS = [
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "v3.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "",
]


def test_what_is_read() -> None:
    assert inputs(OUTPUT) == frozenset()
    assert inputs(TERMINAL) == {0, 4}


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
async def test_output_and_exit_code(stand: Stand, subprotocol: str) -> None:
    async def talk(process: ScriptedProcess) -> int:
        await process.stdout.write(b"out \0\xff")
        await process.stderr.write(b"err")
        return 3

    stand.runtime.programs["talk"] = talk
    async with channels(stand.exec_url("talk", wishes=OUTPUT), subprotocol) as client:
        received = await client.read_all()
        assert client.socket.close_code == 1000
    assert (received[1], received[2]) == (b"out \0\xff", b"err")
    if subprotocol.startswith(("v4", "v5")):
        assert json.loads(received[3])["details"]["causes"][0]["message"] == "3"
    else:
        assert received[3] == b"command terminated with exit code 3"
    assert client.messages[0] == (1, b""), "the sign that all is open"


async def test_success_is_silent_before_v4(stand: Stand) -> None:
    async with channels(stand.exec_url("true", wishes=OUTPUT), "channel.k8s.io") as client:
        assert await client.read_all() == {}


async def test_the_end_of_stdin(stand: Stand) -> None:
    async with channels(stand.exec_url("cat")) as client:
        await client.send(0, b"some")
        await client.send(0, b" bytes")
        await client.close_channel(0)
        received = await client.read_all()
    assert received[1] == b"some bytes"
    assert json.loads(received[3])["status"] == "Success"


async def test_clients_that_end_stdin_under_an_older_name(stand: Stand) -> None:
    """The library of kubectl sends the signal whatever was agreed upon."""
    async with channels(stand.exec_url("cat"), "v4.channel.k8s.io") as client:
        await client.send(0, b"x")
        for channel in (0, 3, 1, 0):
            await client.close_channel(channel)
        assert (await client.read_all())[1] == b"x"


async def test_text_messages_are_bytes_too(stand: Stand) -> None:
    async with channels(stand.exec_url("cat"), "") as client:
        await client.socket.send_str("\0grüße")
        await client.read_until(1, "grüße".encode())


async def test_base64_in_text(stand: Stand) -> None:
    async with connected(stand.exec_url("cat"), "base64.channel.k8s.io") as socket:
        await socket.send_str("0" + base64.b64encode(b"\x01\xfe").decode())
        assert await socket.receive_str() == "1"
        assert await socket.receive_str() == "1" + base64.b64encode(b"\x01\xfe").decode()


async def test_much_input_comes_back(stand: Stand) -> None:
    data = os.urandom(5_000_000)
    async with channels(stand.exec_url("cat")) as client:

        async def send() -> None:
            for offset in range(0, len(data), 32_768):
                await client.send(0, data[offset : offset + 32_768])
            await client.close_channel(0)

        sending = asyncio.ensure_future(send())
        received = await client.read_all()
        await sending
    assert hashlib.sha256(received[1]).digest() == hashlib.sha256(data).digest()


async def test_a_terminal_is_resized(stand: Stand) -> None:
    async with channels(stand.exec_url("cat", wishes=TERMINAL)) as client:
        await client.send(4, b'{"Width":120,"Height":40}')
        await client.read()
        while not stand.runtime.commands:
            await asyncio.sleep(0)
        await stand.process.resized.wait()
        await client.close_channel(0)
        await client.read_all()
    assert stand.process.sizes == [(120, 40)]


async def test_a_command_that_cannot_be_started(stand: Stand) -> None:
    async with channels(stand.exec_url("missing", wishes=OUTPUT)) as client:
        received = await client.read_all()
    assert "not found" in json.loads(received[3])["message"]


async def test_pings_are_answered_while_the_command_says_nothing(stand: Stand) -> None:
    async with connected(stand.exec_url("sleep", "9", wishes=OUTPUT), "v5.channel.k8s.io") as socket:
        await socket.receive()
        socket._autoping = False
        for text in (b"1", b"2"):
            await socket.ping(text)
            assert (await socket.receive()).data == text


async def test_a_client_that_leaves_ends_the_command(stand: Stand) -> None:
    async with channels(stand.exec_url("sleep", "9")) as client:
        await client.read()
        while not stand.runtime.commands:
            await asyncio.sleep(0)
    await stand.process.ended
    assert stand.process.killed


async def test_input_for_which_nobody_asked_is_thrown_away(stand: Stand) -> None:
    async with channels(stand.exec_url("sleep", "9", wishes=OUTPUT)) as client:
        for channel in (0, 1, 3, 4):
            for _ in range(50):
                await client.send(channel, bytes(50_000))
        await client.socket.ping()
        await client.read()


async def test_a_slow_client_slows_the_command(stand: Stand) -> None:
    async def flood(process: ScriptedProcess) -> int:
        for _ in range(400):
            await process.stdout.write(b"x" * 100_000)
        return 0

    stand.runtime.programs["flood"] = flood
    async with channels(stand.exec_url("flood", wishes=StreamWishes(stdout=True))) as client:
        await client.read()
        await client.socket.ping(b"while it is not read")
        while not stand.runtime.commands:
            await asyncio.sleep(0)
        before = -1
        while stand.process.stdout.passed != before:
            before = stand.process.stdout.passed
            await asyncio.sleep(0.1)  # until nothing moves any more
        assert before < 30_000_000
        assert len((await client.read_all())[1]) == 40_000_000


@pytest.mark.parametrize("message", [b"\x09x", b"\xff", b"\xff\x09", b'\x04{"Width":"x"}'])
async def test_a_client_that_misbehaves_loses_its_session_alone(stand: Stand, message: bytes) -> None:
    url = stand.exec_url("sleep", "9", wishes=TERMINAL)
    async with channels(url) as client, channels(stand.exec_url("cat")) as other:
        await client.socket.send_bytes(message)
        await client.read_all()
        await other.send(0, b"still here")
        await other.read_until(1, b"still here")


async def test_a_message_that_is_too_long(stand: Stand) -> None:
    async with channels(stand.exec_url("cat")) as client:
        with contextlib.suppress(ConnectionError):
            await client.send(0, bytes(5_000_000))
        await client.read_all()
    assert stand.process.killed


async def test_a_client_that_leaves_while_it_is_not_read_is_noticed(fresh: Stand) -> None:
    fresh.limits = StreamLimits(watch_seconds=0.05)
    await fresh.start()
    async with channels(fresh.exec_url("sleep", "9", wishes=ALL)) as client:
        sending = asyncio.ensure_future(client.send(0, bytes(4_000_000)))
        more = asyncio.ensure_future(client.send(0, bytes(4_000_000)))
        await asyncio.wait({sending, more}, timeout=0.2)
        assert client.socket._writer is not None
        client.socket._writer.transport.abort()
        for task in (sending, more):
            task.cancel()
    await fresh.process.ended
    assert fresh.process.killed
