"""Two hundred megabytes through a command's stdin and back, over both transports."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests import spdy_client
from tests.stand.node import Node
from tests.websocket_client import connected

pytestmark = pytest.mark.root

REST = os.urandom((1 << 20) - 8)
PART_BYTES = 32 * 1024


def blocks() -> Iterator[bytes]:
    """No two are the same."""
    return (number.to_bytes(8, "big") + REST for number in range(200))


def parts() -> Iterator[bytes]:
    return (block[offset : offset + PART_BYTES] for block in blocks() for offset in range(0, len(block), PART_BYTES))


def expected() -> str:
    found = hashlib.sha256()
    for block in blocks():
        found.update(block)
    return found.hexdigest()


def cat_url(node: Node, container: str) -> str:
    request = node.m.ExecRequest(container_id=container, cmd=["cat"], stdin=True, stdout=True)
    return str(node.call("Exec", request).url)


async def over_spdy(url: str) -> tuple[str, Any]:
    client = await spdy_client.connect(url, "v4.channel.k8s.io")
    try:
        error, stdin, stdout = await client.opened("error", "stdin", "stdout")

        async def feed() -> None:
            for part in parts():
                await stdin.write(part)
            await stdin.close()

        feeding = asyncio.ensure_future(feed())
        found = hashlib.sha256()
        while not (stdout.ended.is_set() and error.ended.is_set()):
            await client.next_frame()
            found.update(stdout.data)
            stdout.data.clear()
        await feeding
        return found.hexdigest(), json.loads(await error.read_all())
    finally:
        await client.close()


async def over_websocket(url: str) -> tuple[str, Any]:
    async with connected(url, "v5.channel.k8s.io") as socket:

        async def feed() -> None:
            for part in parts():
                await socket.send_bytes(b"\0" + part)
            await socket.send_bytes(b"\xff\0")

        feeding = asyncio.ensure_future(feed())
        found, status = hashlib.sha256(), b""
        while (message := await socket.receive()).type is aiohttp.WSMsgType.BINARY:
            if message.data[0] == 1:
                found.update(memoryview(message.data)[1:])
            elif message.data[0] == 3:
                status += message.data[1:]
        await feeding
        return found.hexdigest(), json.loads(status)


@pytest.mark.parametrize("copy", [over_spdy, over_websocket])
async def test_two_hundred_megabytes_come_back_as_they_were(node: Node, container: str, copy: Any) -> None:
    async with asyncio.timeout(120):
        checksum, status = await copy(cat_url(node, container))
    assert (checksum, status["status"]) == (expected(), "Success")
