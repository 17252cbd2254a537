"""Deadlines, cancellation, many calls at once."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import pytest

from isulad_py.model.errors import HostFailure
from isulad_py.model.events import EventKind
from isulad_py.ports.runtime import ExecResult
from tests.wire.conftest import Served
from tests.wire.raw import message

EXEC = "runtime.v1.RuntimeService/ExecSync"


def exec_request(served: Served, client: Any) -> Any:
    container = served.engine.add_container(served.engine.add_pod())
    return client.m.ExecSyncRequest(container_id=container.id, cmd=["sleep"])


async def test_a_cancelled_call_cancels_its_handler(served: Served, client: Any) -> None:
    served.engine.faults.hold("exec.exec_sync")
    call = client.runtime.ExecSync(exec_request(served, client))
    waiting = asyncio.ensure_future(_outcome(call))
    await served.engine.faults.wait_entered("exec.exec_sync")
    call.cancel()
    await waiting
    await served.tasks.settle()
    assert served.engine.cancelled == ["exec.exec_sync"]
    assert served.seen.finished == [(EXEC, "CANCELLED")]
    assert served.seen.in_flight == 0


async def _outcome(call: Any) -> grpc.StatusCode:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        await call
    return await call.code()


async def test_a_deadline_cancels_the_handler(served: Served, client: Any) -> None:
    served.engine.faults.hold("exec.exec_sync")
    call = client.runtime.ExecSync(exec_request(served, client), timeout=0.2)
    assert await _outcome(call) is grpc.StatusCode.DEADLINE_EXCEEDED
    await served.tasks.settle()
    assert served.engine.cancelled == ["exec.exec_sync"]
    assert served.seen.finished in ([(EXEC, "DEADLINE_EXCEEDED")], [(EXEC, "CANCELLED")])


async def test_the_server_itself_keeps_the_deadline(served: Served) -> None:
    """A client that only waits is told, as one that gives up is not needed for it."""
    served.engine.faults.hold("readiness.status")
    raw = await served.connect_raw()
    path = "/runtime.v1.RuntimeService/Status"
    answer = await raw.call(message(), {":path": path, "grpc-timeout": "50m"})
    assert (answer.status, answer.message) == ("4", "the client's deadline has passed")
    assert served.seen.finished == [("runtime.v1.RuntimeService/Status", "DEADLINE_EXCEEDED")]
    assert served.engine.cancelled == ["readiness.status"]


async def test_cleaning_up_is_not_cancelled_again(served: Served) -> None:
    """A deadline, the client's reset at the same moment and the end of its connection are one cancellation."""
    cleaned = asyncio.Event()
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def at(step: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            begun.set()
            await go_on.wait()
            cleaned.set()

    served.engine.at = at  # type: ignore[method-assign]
    raw = await served.connect_raw()
    stream = raw.begin({":path": "/runtime.v1.RuntimeService/Status", "grpc-timeout": "20m"})
    raw.send(stream, message())
    await begun.wait()
    raw.h2.reset_stream(stream)
    raw.flush()
    await raw.close()
    client = served.connect()
    await client.runtime.Version(client.m.VersionRequest())
    go_on.set()
    await served.tasks.settle()
    assert cleaned.is_set()


async def test_an_error_while_being_cancelled_does_not_hide_why(served: Served) -> None:
    async def at(step: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise HostFailure("runtime: killed") from None

    served.engine.at = at  # type: ignore[method-assign]
    raw = await served.connect_raw()
    headers = {":path": "/runtime.v1.RuntimeService/Status", "grpc-timeout": "20m"}
    assert (await raw.call(message(), headers)).status == "4"


async def test_a_reset_before_the_request_is_read(served: Served) -> None:
    raw = await served.connect_raw()
    stream = raw.begin()
    raw.h2.reset_stream(stream)
    raw.flush()
    assert (await raw.call(message())).status == "0"
    await raw.close()
    await served.tasks.settle()
    assert served.seen.in_flight == 0


async def test_a_hundred_calls_at_once_and_lists_between_them(served: Served, client: Any) -> None:
    go = served.engine.faults.hold("exec.exec_sync")
    served.engine.exec_result = ExecResult(exit_code=0, stdout=b"done", stderr=b"")
    request = exec_request(served, client)
    calls = [asyncio.ensure_future(_stdout(client.runtime.ExecSync(request))) for _ in range(100)]
    while served.engine.faults.calls["exec.exec_sync"] < 100:
        listed = await client.runtime.ListContainers(client.m.ListContainersRequest())
        assert len(listed.containers) == 1
    assert served.seen.in_flight == 100
    go.set()
    assert await asyncio.gather(*calls) == [b"done"] * 100
    assert served.seen.in_flight == 0


async def _stdout(call: Any) -> bytes:
    return (await call).stdout  # type: ignore[no-any-return]


async def test_large_answers_flow_beside_small_ones(served: Served, client: Any) -> None:
    """More than every window of HTTP/2, several times at once on one connection."""
    served.engine.exec_result = ExecResult(exit_code=0, stdout=b"x" * 8_000_000, stderr=b"")
    request = exec_request(served, client)
    calls = [asyncio.ensure_future(_stdout(client.runtime.ExecSync(request))) for _ in range(4)]
    await client.runtime.Version(client.m.VersionRequest())
    assert [len(out) for out in await asyncio.gather(*calls)] == [8_000_000] * 4


async def test_a_client_that_does_not_read_holds_back_nobody(served: Served) -> None:
    served.engine.exec_result = ExecResult(exit_code=0, stdout=b"x" * 8_000_000, stderr=b"")
    deaf = await served.connect_raw()
    container = served.engine.add_container(served.engine.add_pod())
    client = served.connect()
    request = client.m.ExecSyncRequest(container_id=container.id, cmd=["yes"]).SerializeToString()
    stream = deaf.begin({":path": f"/{EXEC}"})
    deaf.send(stream, message(request))
    while served.seen.in_flight < 1:
        await client.runtime.Version(client.m.VersionRequest())
    assert len((await client.runtime.Version(client.m.VersionRequest())).version)
    await deaf.close()
    await served.tasks.settle()


async def test_a_subscriber_that_goes_away_is_forgotten(served: Served, client: Any) -> None:
    stream = client.runtime.GetContainerEvents(client.m.GetEventsRequest())
    await stream.initial_metadata()
    assert served.engine.subscribed == 1
    await client.channel.close()
    await served.tasks.settle()
    assert served.engine.subscribed == 0


async def test_a_subscriber_that_is_too_slow_is_cut_off(served: Served) -> None:
    pod = served.engine.add_pod()
    client = served.connect()
    stream = client.runtime.GetContainerEvents(client.m.GetEventsRequest())
    await stream.initial_metadata()
    for _ in range(2000):
        served.engine.events.announce(EventKind.CREATED, pod.id, pod.id)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stream:
            pass
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
