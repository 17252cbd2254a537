"""Port-forward through a real daemon into real pods."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from tests import spdy_client, spdy_peer
from tests.spdy_client import ClientStream, SpdyClient
from tests.stand.node import Node
from tests.websocket_client import channels

pytestmark = pytest.mark.root

SERVE = "mkdir /tmp/w; head -c 100000 /dev/urandom > /tmp/w/f; exec httpd -f -p {0} -h /tmp/w"


def forward_url(node: Node, pod_id: str, *ports: int) -> str:
    return str(node.call("PortForward", node.m.PortForwardRequest(pod_sandbox_id=pod_id, port=ports)).url)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.asynccontextmanager
async def forwarding(node: Node, pod_id: str) -> AsyncIterator[SpdyClient]:
    client = await spdy_client.connect(forward_url(node, pod_id), "portforward.k8s.io")
    try:
        yield client
    finally:
        await client.close()


async def connected(client: SpdyClient, port: int, request: int = 0) -> tuple[ClientStream, ClientStream]:
    error = await client.open("error", port=str(port), requestid=str(request))
    data = await client.open("data", port=str(port), requestid=str(request))
    for stream in (error, data):
        await stream.accepted.wait()
    return error, data


async def reached(client: SpdyClient, port: int) -> None:
    """A server takes a moment to listen."""
    request = 1_000_000
    while True:
        request += 1
        error, data = await connected(client, port, request)
        await data.write(b"GET /none HTTP/1.0\r\n\r\n")
        if await data.read_all():
            await data.close()
            return
        assert b"refused" in await error.read_all()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("host_network", [False, True])
async def test_a_hundred_requests_at_once(node: Node, *, host_network: bool) -> None:
    port = free_port()
    config = node.pod_config()
    if host_network:
        config.linux.security_context.namespace_options.network = node.m.NODE
    pod_id = node.run_pod(config)
    container = node.run_container(pod_id, "sh", "-c", SERVE.format(port))
    content = node.wait(lambda: node.exec(container, "cat", "/tmp/w/f").stdout)

    async with forwarding(node, pod_id) as client:
        await reached(client, port)

        async def one(number: int) -> None:
            error, data = await connected(client, port, number)
            await data.write(b"GET /f HTTP/1.0\r\n\r\n")
            body = (await data.read_all()).partition(b"\r\n\r\n")[2]
            assert body == content
            await data.close()
            assert await error.read_all() == b""

        await asyncio.gather(*(one(number) for number in range(100)))


async def test_half_closes_and_a_refused_port(node: Node) -> None:
    pod_id = node.run_pod()
    container = node.run_container(pod_id, "nc", "-ll", "-p", "7007", "-e", "sh", "-c", "cat; echo the end")
    async with forwarding(node, pod_id) as client:
        error, data = await connected(client, 7008, 1)
        assert b"7008" in await error.read_all()
        node.wait(lambda: node.exec(container, "sh", "-c", "netstat -ltn | grep -q :7007").exit_code == 0)
        payload = os.urandom(3_000_000)
        error, data = await connected(client, 7007, 2)
        for offset in range(0, len(payload), 65536):
            await data.write(payload[offset : offset + 65536])
        await data.close()
        assert await data.read_all() == payload + b"the end\n"
        assert await error.read_all() == b""


async def test_localhost_may_be_ipv6(node: Node) -> None:
    pod_id = node.run_pod()
    container = node.run_container(pod_id, "httpd", "-f", "-p", "[::1]:7007", "-h", "/")
    node.wait(lambda: node.exec(container, "sh", "-c", "netstat -ltn | grep -q '::1:7007'").exit_code == 0)
    async with forwarding(node, pod_id) as client:
        _, data = await connected(client, 7007)
        await data.write(b"GET /etc/hostname HTTP/1.0\r\n\r\n")
        assert b" 200 OK" in await data.read_all()


async def test_a_client_that_resets_frees_the_pods_connection(node: Node) -> None:
    pod_id = node.run_pod()
    container = node.run_container(pod_id, "nc", "-ll", "-p", "7007", "-e", "sleep", "1000")
    node.wait(lambda: node.exec(container, "sh", "-c", "netstat -ltn | grep -q :7007").exit_code == 0)
    established = "netstat -tn | grep ':7007 .*ESTABLISHED'"
    async with forwarding(node, pod_id) as client:
        error, data = await connected(client, 7007)
        node.wait(lambda: node.exec(container, "sh", "-c", established).exit_code == 0)
        await client.send(client.peer.pair(spdy_peer.RST_STREAM, data.number, 5))
        assert await error.read_all() == b""
        node.wait(lambda: node.exec(container, "sh", "-c", established).exit_code == 1)


async def test_over_websocket_channels(node: Node) -> None:
    pod_id = node.run_pod()
    container = node.run_container(pod_id, "nc", "-ll", "-p", "7007", "-e", "cat")
    node.wait(lambda: node.exec(container, "sh", "-c", "netstat -ltn | grep -q :7007").exit_code == 0)
    async with channels(forward_url(node, pod_id, 7007, 7008), "v4.channel.k8s.io", count=4) as client:
        await client.send(0, b"through")
        await client.read_until(0, struct.pack("<H", 7007) + b"through")
        await client.read_until(3, b"7008")
