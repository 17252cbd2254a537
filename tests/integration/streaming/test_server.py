"""The streaming server inside the daemon."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from tests.integration.streaming.sides import STDERR, STDOUT, Transport, outcome
from tests.integration.streaming.test_commands import attach_url, exec_url, running
from tests.stand.node import Node

pytestmark = pytest.mark.root


def port(node: Node) -> int:
    return int(Path(node.daemon.config["state"], "stream.port").read_text())


async def test_a_thousand_silent_connections(node: Node, container: str, transport: Transport) -> None:
    silent = [(await asyncio.open_connection("127.0.0.1", port(node)))[1] for _ in range(1000)]
    async with transport(exec_url(node, container, "echo", "served"), STDOUT, STDERR) as side:
        assert (await outcome(side))[0] == b"served\n"
    for writer in silent:
        writer.close()


async def test_a_token_is_used_once(node: Node, container: str, transport: Transport) -> None:
    url = exec_url(node, container, "true")
    assert url.startswith(f"http://127.0.0.1:{port(node)}/cri/exec/")
    async with transport(url, STDOUT, STDERR) as side:
        await outcome(side)
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 404


async def test_a_stop_of_the_daemon_ends_sessions_and_no_container(
    node: Node, container: str, transport: Transport
) -> None:
    url = exec_url(node, container, "sh", "-c", "sleep 4545; true")
    async with (
        transport(url, STDOUT, STDERR) as side,
        transport(attach_url(node, container, stdout=True, stderr=True), STDOUT, STDERR) as attached,
    ):
        node.wait(lambda: running(node, container, "sleep 4545"))
        stopping = asyncio.ensure_future(asyncio.to_thread(node.daemon.stop))
        for each in (side, attached):
            assert "stopping" in (await outcome(each))[2]["message"]
    assert await stopping == 0
    node.daemon.start()
    node.reconnect()
    assert node.status(container).state == node.m.CONTAINER_RUNNING
    assert not running(node, container, "sleep 4545")


async def test_a_death_of_the_daemon_leaves_no_command_behind_for_ever(
    node: Node, container: str, transport: Transport
) -> None:
    """Also one that says nothing, and would never learn that nobody listens; the container lives on."""
    url = exec_url(node, container, "sh", "-c", "echo begun; sleep 4646")
    async with transport(url, STDOUT, STDERR) as side:
        await side.read_until(STDOUT, b"begun")
        await asyncio.to_thread(node.daemon.kill)
        assert (await side.read_all()).get(3, b"") == b""
    node.daemon.start()
    node.reconnect()
    assert node.status(container).state == node.m.CONTAINER_RUNNING
    assert not running(node, container, "sleep 4646")
    async with transport(exec_url(node, container, "echo", "again"), STDOUT, STDERR) as side:
        stdout, _, status = await outcome(side)
    assert (stdout, json.dumps(status["status"])) == (b"again\n", '"Success"')
