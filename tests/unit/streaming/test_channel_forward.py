from __future__ import annotations

import struct

import aiohttp
import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.streaming.channel_forward import forwarded_ports, inputs
from tests.fakes.scripted_streams import ScriptedConnection
from tests.unit.streaming.stand import NETNS, Stand
from tests.websocket_client import channels, connected


async def echo(connection: ScriptedConnection) -> None:
    while data := await connection.peer_source.read(65536):
        await connection.peer_sink.write(data.upper())


async def greet_and_end(connection: ScriptedConnection) -> None:
    await connection.peer_sink.write(b"goodbye")
    await connection.peer_sink.close()


def test_where_the_ports_come_from() -> None:
    assert forwarded_ports((80, 81), ["90"]) == (80, 81)
    assert forwarded_ports((), ["80,81", "82"]) == (80, 81, 82)
    assert inputs((80, 81)) == {0, 2}


@pytest.mark.parametrize("query", [[], ["x"], ["0"], ["65536"], ["-1"], ["80,"], ["1"] * 101, ["٣"]])
def test_ports_that_are_none(query: list[str]) -> None:
    with pytest.raises(InvalidInput, match="port"):
        forwarded_ports((), query)


@pytest.mark.parametrize("subprotocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "portforward.k8s.io", ""])
async def test_two_ports_on_one_connection(stand: Stand, subprotocol: str) -> None:
    stand.runtime.listeners[NETNS, 8080] = echo
    stand.runtime.listeners[NETNS, 8081] = echo
    async with channels(stand.forward_url(8080, 8081), subprotocol, count=4) as client:
        for _ in range(4):
            await client.read()
        ports = (struct.pack("<H", 8080), struct.pack("<H", 8081))
        assert client.messages == [(0, ports[0]), (1, ports[0]), (2, ports[1]), (3, ports[1])]
        await client.send(2, b"second")
        await client.read_until(2, b"SECOND")
        await client.send(0, b"first")
        await client.read_until(0, b"FIRST")
    for connection in stand.runtime.connections:
        await connection.closed.wait()


async def test_ports_in_the_query(stand: Stand) -> None:
    stand.runtime.listeners[NETNS, 8080] = greet_and_end
    async with channels(stand.forward_url() + "?port=8080", "v4.channel.k8s.io", count=2) as client:
        received = await client.read_all()
        assert client.socket.close_code == 1000
    assert received[0] == struct.pack("<H", 8080) + b"goodbye"


async def test_a_refused_port_is_told_and_does_not_concern_the_other(stand: Stand) -> None:
    stand.runtime.listeners[NETNS, 8081] = echo
    async with channels(stand.forward_url(8080, 8081), "v4.channel.k8s.io", count=4) as client:
        await client.read_until(1, b"port 8080: connection refused")
        await client.send(2, b"second")
        await client.read_until(2, b"SECOND")


async def test_without_ports_there_is_nothing_to_do(stand: Stand) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with connected(stand.forward_url(), "v4.channel.k8s.io"):
            pass
    assert caught.value.status == 400
