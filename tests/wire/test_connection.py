"""HTTP/2 as no client of gRPC speaks it: a connection ends alone."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
from hyperframe.frame import Frame

from isulad_py.wire import connection
from tests.wire.conftest import Served
from tests.wire.raw import RawClient, message

OK = "0"


@pytest.fixture
async def raw(served: Served) -> RawClient:
    return await served.connect_raw()


async def still_serves(served: Served) -> bool:
    client = served.connect()
    return bool((await client.runtime.Version(client.m.VersionRequest())).version)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(4096),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\1",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\4\1\5\0\0\0\1\xff\xff\xff\xff",
    ],
)
async def test_what_is_not_http2_ends_its_connection(served: Served, data: bytes) -> None:
    reader, writer = await asyncio.open_unix_connection(str(served.path))
    writer.write(data)
    with contextlib.suppress(ConnectionError):
        while await reader.read(65536):
            pass
        writer.close()
        await writer.wait_closed()
    assert await still_serves(served)


async def test_frames_of_later_versions_are_ignored(served: Served, raw: RawClient) -> None:
    raw.write(b"\0\0\4\xee\0\0\0\0\0abcd")
    assert Frame.parse_frame_header(memoryview(b"\0\0\4\xee\0\0\0\0\0"))[0].type == 0xEE
    assert (await raw.call(message())).status == OK


async def test_a_client_that_hangs_up_in_the_middle(served: Served, raw: RawClient) -> None:
    raw.begin()
    half = raw.begin()
    raw.send(half, message(b"abc", length=100), end=False)
    await raw.close()
    assert await still_serves(served)


async def test_clients_learn_how_many_calls_they_may_make(served: Served) -> None:
    raw = await served.connect_raw()
    assert (await raw.call(message())).status == "0"
    assert raw.h2.remote_settings.max_concurrent_streams == connection.STREAMS_LIMIT
    assert raw.h2.remote_settings.initial_window_size == connection.STREAM_WINDOW_BYTES
