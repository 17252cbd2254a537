from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from isulad_py.model.errors import DeadlineExceeded, HostFailure
from isulad_py.ports.streams import StreamWishes
from isulad_py.streaming.command import CommandSession
from isulad_py.streaming.failures import ClientGone, ProtocolError
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.status import Status
from tests.fakes.scripted_streams import Pipe, Program, ScriptedProcess, ScriptedStreams
from tests.unit.streaming.stand import ALL, OUTPUT


class Client:
    """Implements streaming.command.CommandClient, in memory."""

    def __init__(self, wishes: StreamWishes = ALL) -> None:
        self.stdin = Pipe() if wishes.stdin else None
        self.stdout = Pipe(1_000_000) if wishes.stdout else None
        self.stderr = Pipe(1_000_000) if wishes.stderr else None
        self.sizes: asyncio.Queue[tuple[int, int] | Exception | None] = asyncio.Queue()
        self.told: Status | None = None
        self.reads = True

    async def next_size(self) -> tuple[int, int] | None:
        size = await self.sizes.get()
        if isinstance(size, Exception):
            raise size
        return size

    async def finish(self, status: Status) -> None:
        if not self.reads:
            await asyncio.get_running_loop().create_future()
        self.told = status


class Session:
    def __init__(self, program: Program, wishes: StreamWishes = ALL, *, attached: bool = False) -> None:
        self.client = Client(wishes)
        self.streams = ScriptedStreams(ScriptedProcess(["x"], wishes), program)
        self.interruption: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session = CommandSession(
            self.client,
            limits=StreamLimits(quiet_seconds=0.02, idle_seconds=0.5),
            interrupted=self._interrupted,
            attached=attached,
        )

    async def _interrupted(self) -> None:
        await self.interruption

    async def _open(self) -> ScriptedStreams:
        return self.streams

    def run(self) -> Awaitable[Status]:
        return asyncio.ensure_future(self._session.run(self._open))


async def cat(process: ScriptedProcess) -> int:
    while data := await process.stdin.read(1000):
        await process.stdout.write(data)
    return 4


async def sleep(process: ScriptedProcess) -> int:
    await asyncio.get_running_loop().create_future()
    return 0


async def test_input_output_and_status() -> None:
    session = Session(cat)
    running = session.run()
    assert session.client.stdin
    assert session.client.stdout
    await session.client.stdin.write(b"text")
    assert await session.client.stdout.read(10) == b"text"
    await session.client.stdin.close()
    status = await running
    assert status is session.client.told
    assert status.reason == "NonZeroExitCode"
    assert session.streams.closed == 1


async def test_an_attached_clients_status_is_not_the_commands() -> None:
    session = Session(cat, attached=True)
    running = session.run()
    assert session.client.stdin
    await session.client.stdin.close()
    assert (await running).status == "Success"


async def test_a_client_that_goes_is_told_nothing() -> None:
    session = Session(sleep)
    running = session.run()
    session.client.sizes.put_nowait(ClientGone("left"))
    with pytest.raises(ClientGone):
        await running
    assert session.client.told is None
    assert session.streams.process.killed


async def test_a_client_that_does_not_read_the_end_is_given_up() -> None:
    session = Session(cat)
    session.client.reads = False
    running = session.run()
    assert session.client.stdin
    await session.client.stdin.close()
    with pytest.raises(ClientGone, match="does not read"):
        await running


@pytest.mark.parametrize("error", [DeadlineExceeded("idle"), HostFailure("broken")])
async def test_an_interruption_is_told(error: Exception) -> None:
    session = Session(sleep)
    running = session.run()
    session.interruption.set_exception(error)
    assert (await running).message == str(error)
    assert session.streams.process.killed


async def test_nonsense_from_the_client_is_told() -> None:
    session = Session(sleep)
    running = session.run()
    session.client.sizes.put_nowait(ProtocolError("resize: what"))
    assert (await running).message == "resize: what"


async def test_streams_that_break_are_told() -> None:
    async def breaks(process: ScriptedProcess) -> int:
        raise HostFailure("the runtime has died")

    session = Session(breaks, OUTPUT)
    assert (await session.run()).message == "the runtime has died"


async def test_streams_that_cannot_be_opened_are_told() -> None:
    client = Client()

    async def refuse() -> ScriptedStreams:
        raise HostFailure("no such program")

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    status = await CommandSession(client, limits=StreamLimits(), interrupted=never).run(refuse)
    assert status.message == "no such program"
    assert client.told is status


async def test_a_cancelled_session_ends_the_command() -> None:
    session = Session(sleep)
    running = asyncio.ensure_future(session.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while not session.streams.closed:
        await asyncio.sleep(0)
    assert session.streams.process.killed


async def test_a_slow_client_is_waited_for_after_the_exit() -> None:
    async def burst(process: ScriptedProcess) -> int:
        await process.stdout.write(bytes(60_000))
        return 0

    session = Session(burst, StreamWishes(stdout=True))
    session.client.stdout = pipe = Pipe(10_000)
    running = asyncio.ensure_future(session.run())
    await session.streams.process.ended
    got = 0
    while got < 60_000:
        await asyncio.sleep(0.03)  # longer than a quiet source is waited for
        got += len(await pipe.read(10_000))
    assert (await running).status == "Success"


async def test_output_for_which_nobody_asked_is_thrown_away() -> None:
    async def burst(process: ScriptedProcess) -> int:
        await process.stderr.write(bytes(500_000))
        return 0

    session = Session(burst, OUTPUT)
    session.client.stderr = None
    assert (await session.run()).status == "Success"
