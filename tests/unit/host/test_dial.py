"""TCP to localhost, in this machine's own namespace; others need root (tests/contract/test_streams.py)."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from isulad_py.host.dial import dial_localhost
from isulad_py.model.errors import InvalidInput, NotFound, Unavailable


@pytest.fixture(autouse=True)
def _nothing_is_left_open() -> Iterator[None]:
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def listener(family: int = socket.AF_INET, host: str = "127.0.0.1") -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.bind((host, 0))
    listening.listen()
    return listening


async def test_both_directions_and_each_half_close() -> None:
    with listener() as listening:
        connection = await dial_localhost("", listening.getsockname()[1])
        peer, _ = listening.accept()
        await connection.sink.write(b"question")
        await connection.sink.close()
        await connection.sink.close()
        assert peer.recv(100) + peer.recv(100) == b"question"
        peer.send(b"answer")
        assert await connection.source.read(100) == b"answer"
        peer.close()
        assert await connection.source.read(100) == b""
        await connection.close()
        await connection.close()


async def test_the_far_end_may_stop_first() -> None:
    with listener() as listening:
        connection = await dial_localhost("", listening.getsockname()[1])
        peer, _ = listening.accept()
        peer.shutdown(socket.SHUT_WR)
        assert await connection.source.read(100) == b""
        await connection.sink.write(b"still")
        assert peer.recv(100) == b"still"
        await connection.close()
        assert peer.recv(100) == b""
        peer.close()


async def test_a_reset_is_told_to_both_directions() -> None:
    with listener() as listening:
        connection = await dial_localhost("", listening.getsockname()[1])
        peer, _ = listening.accept()
        await connection.sink.write(b"unread")
        peer.close()
        with pytest.raises(Unavailable, match="gone"):
            await connection.source.read(100)
        assert await connection.source.read(100) == b""
        with pytest.raises(Unavailable, match="gone"):
            await connection.sink.write(b"more")
        await connection.close()


async def test_ipv6_where_ipv4_refuses() -> None:
    with listener(socket.AF_INET6, "::1") as listening:
        connection = await dial_localhost("", listening.getsockname()[1])
        peer, _ = listening.accept()
        peer.send(b"six")
        assert await connection.source.read(100) == b"six"
        peer.close()
        await connection.close()


async def test_a_port_where_nobody_listens_is_named() -> None:
    with listener() as listening:
        port = listening.getsockname()[1]
    with pytest.raises(Unavailable, match=f"port {port}: connection refused"):
        await dial_localhost("", port)


@pytest.mark.parametrize("port", [0, -1, 65536])
async def test_what_is_no_port(port: int) -> None:
    with pytest.raises(InvalidInput, match="port"):
        await dial_localhost("", port)


async def test_a_namespace_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await dial_localhost(str(tmp_path / "net"), 80)


async def test_cancelled_while_it_connects() -> None:
    threads = threading.active_count()
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        first = await dial_localhost("", port)
        waiting = asyncio.ensure_future(dial_localhost("", port))
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await first.close()
    assert threading.active_count() <= max(threads, 17)
