from __future__ import annotations

import asyncio

import pytest

from isulad_py.streaming.limits import StreamLimits
from tests import spdy_peer
from tests.fakes.scripted_streams import ScriptedConnection
from tests.spdy_client import ClientStream, SpdyClient, UpgradeFailed
from tests.unit.streaming.stand import NETNS, Stand
from tests.websocket_client import connected

PROTOCOL = "portforward.k8s.io"


async def echo(connection: ScriptedConnection) -> None:
    while data := await connection.peer_source.read(65536):
        await connection.peer_sink.write(data.upper())
    await connection.peer_sink.write(b"|end")
    await connection.peer_sink.close()


async def speak_first(connection: ScriptedConnection) -> None:
    await connection.peer_sink.write(b"hello")
    await connection.peer_sink.close()
    while await connection.peer_source.read(65536):
        pass


async def silent(connection: ScriptedConnection) -> None:
    await connection.closed.wait()


@pytest.fixture
async def client(stand: Stand) -> SpdyClient:
    stand.runtime.listeners[NETNS, 8080] = echo
    return await stand.spdy(stand.forward_url(), PROTOCOL)


async def open_pair(client: SpdyClient, port: int = 8080, request: str = "0") -> tuple[ClientStream, ClientStream]:
    error = await client.open("error", port=str(port), requestid=request)
    data = await client.open("data", port=str(port), requestid=request)
    for stream in (error, data):
        await stream.accepted.wait()
    return error, data


async def test_a_connection_with_half_closes(client: SpdyClient) -> None:
    error, data = await open_pair(client)
    await data.write(b"some")
    await data.read_until(b"SOME")
    await data.close()
    assert await data.read_all() == b"SOME|end"
    assert await error.read_all() == b""


async def test_the_pod_may_end_first(stand: Stand, client: SpdyClient) -> None:
    stand.runtime.listeners[NETNS, 8081] = speak_first
    error, data = await open_pair(client, 8081)
    assert await data.read_all() == b"hello"
    assert not error.ended.is_set()
    await data.close()
    assert await error.read_all() == b""


async def test_many_connections_at_once(client: SpdyClient) -> None:
    async def one(number: int) -> None:
        text = f"request {number} ".encode() * 1000
        error, data = await open_pair(client, request=str(number))
        await data.write(text, fin=True)
        assert await data.read_all() == text.upper() + b"|end"
        assert await error.read_all() == b""

    await asyncio.gather(*(one(number) for number in range(100)))


async def test_a_refused_port_is_told_on_its_error_stream_alone(client: SpdyClient) -> None:
    error, data = await open_pair(client, 9, "1")
    assert await error.read_all() == b"port 9: connection refused"
    assert await data.read_all() == b""
    _, other = await open_pair(client, request="2")
    await other.write(b"on", fin=True)
    assert await other.read_all() == b"ON|end"


async def test_a_reset_ends_the_pods_connection(stand: Stand, client: SpdyClient) -> None:
    """As the library of kubectl does when its local connection has ended."""
    stand.runtime.listeners[NETNS, 8081] = silent
    error, data = await open_pair(client, 8081)
    await client.send(client.peer.pair(spdy_peer.RST_STREAM, data.number, 5))
    assert await error.read_all() == b""
    await stand.runtime.connections[0].closed.wait()


async def test_a_client_that_leaves_ends_all_connections(stand: Stand, client: SpdyClient) -> None:
    stand.runtime.listeners[NETNS, 8081] = silent
    for number in range(3):
        await open_pair(client, 8081, str(number))
    while len(stand.runtime.connections) < 3:
        await asyncio.sleep(0)
    await client.close()
    for connection in stand.runtime.connections:
        await connection.closed.wait()


async def test_clients_without_request_ids(client: SpdyClient) -> None:
    error = await client.open("error", port="8080")
    data = await client.open("data", port="8080")
    await data.accepted.wait()
    await data.write(b"x", fin=True)
    assert await data.read_all() == b"X|end"
    assert await error.read_all() == b""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"port": "x"},
        {"port": "0"},
        {"port": "65536"},
        {"port": "-1"},
        {"port": "8" * 1000},
    ],
)
async def test_streams_for_no_port_are_refused(client: SpdyClient, headers: dict[str, str]) -> None:
    stream = await client.open("data", **headers)
    await stream.accepted.wait()
    assert stream.reset == 3
    stream = await client.open("stdin", port="8080")
    await stream.accepted.wait()
    assert stream.reset == 3


async def test_a_second_stream_of_the_same_kind_is_refused(client: SpdyClient) -> None:
    first = await client.open("data", port="8080", requestid="1")
    second = await client.open("data", port="8080", requestid="1")
    await second.accepted.wait()
    assert (first.reset, second.reset) == (None, 3)


async def test_a_stream_that_stays_alone(fresh: Stand) -> None:
    fresh.limits = StreamLimits(creation_seconds=0.05)
    fresh.runtime.listeners[NETNS, 8080] = echo
    await fresh.start()
    client = await fresh.spdy(fresh.forward_url(), PROTOCOL)
    lonely = await client.open("error", port="8080", requestid="1")
    await lonely.ended.wait()
    assert lonely.reset == 5
    _, data = await open_pair(client, request="1")
    await data.write(b"x", fin=True)
    assert await data.read_all() == b"X|end"


async def test_host_network(stand: Stand) -> None:
    stand.runtime.listeners["", 8080] = echo
    stand.engine.change(stand.pod, environment=type(stand.pod.environment)())
    client = await stand.spdy(stand.forward_url(), PROTOCOL)
    _, data = await open_pair(client)
    await data.write(b"x", fin=True)
    assert await data.read_all() == b"X|end"


async def test_a_pod_that_stopped_meanwhile(stand: Stand, client: SpdyClient) -> None:
    stand.engine.change(stand.pod, stopping_at=1)
    error, _ = await open_pair(client)
    assert b"not ready" in await error.read_all()


async def test_nothing_else_is_spoken(stand: Stand) -> None:
    with pytest.raises(UpgradeFailed) as caught:
        await stand.spdy(stand.forward_url(), "v4.channel.k8s.io")
    assert caught.value.status == 403
    assert "X-Accepted-Stream-Protocol-Versions: portforward.k8s.io" in caught.value.head


async def test_through_a_websocket(stand: Stand) -> None:
    stand.runtime.listeners[NETNS, 8080] = echo
    peer = spdy_peer.Peer()
    async with connected(stand.forward_url(), "SPDY/3.1+portforward.k8s.io") as socket:
        whole = b"".join(
            (
                peer.syn_stream(1, {"streamtype": "error", "port": "8080", "requestid": "0"}),
                peer.syn_stream(3, {"streamtype": "data", "port": "8080", "requestid": "0"}),
                peer.data(3, b"through", fin=True),
            )
        )
        for offset in range(0, len(whole), 7):  # messages and frames need not agree
            await socket.send_bytes(whole[offset : offset + 7])
        await socket.ping()
        said = b""
        while not said.endswith(b"|end"):
            said += b"".join(
                frame.body for frame in peer.hear(await socket.receive_bytes()) if frame[:2] == (spdy_peer.DATA, 3)
            )
    assert said == b"THROUGH|end"


async def test_text_in_a_tunnel_ends_it(stand: Stand) -> None:
    async with connected(stand.forward_url(), "SPDY/3.1+portforward.k8s.io") as socket:
        await socket.send_str("hello")
        while (await socket.receive()).type.name == "BINARY":
            pass
        assert socket.closed
