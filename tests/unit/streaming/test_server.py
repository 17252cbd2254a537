from __future__ import annotations

import asyncio
import contextlib
import json
import os

import aiohttp
import pytest

from isulad_py.engine.sessions import MOST_TOKENS
from isulad_py.model.errors import HostFailure, Unavailable
from isulad_py.ports.streams import StreamWishes
from isulad_py.streaming.limits import StreamLimits
from isulad_py.streaming.server import ServerOptions, StreamServer
from tests import spdy_client
from tests.fakes.scripted_streams import ScriptedProcess
from tests.spdy_client import UpgradeFailed
from tests.stand.certificates import Certificates, make_certificates
from tests.unit.streaming.stand import ALL, OUTPUT, Stand
from tests.websocket_client import channels, connected

SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"]


async def status_of(url: str, lines: list[str] | None = None, method: str = "GET") -> int:
    reader, writer, head = await spdy_client.request(url, SPDY if lines is None else lines, method=method)
    await reader.read()
    writer.close()
    return int(head.split()[1])


async def test_a_token_is_good_for_one_request(stand: Stand) -> None:
    url = stand.exec_url("true", wishes=OUTPUT)
    client = await stand.spdy(url)
    error, *_ = await client.opened("error", "stdout", "stderr")
    await error.read_all()
    with pytest.raises(UpgradeFailed) as caught:
        await stand.spdy(url)
    assert caught.value.status == 404


async def test_a_token_lives_a_minute(stand: Stand) -> None:
    url = stand.exec_url("true")
    stand.engine.clock.advance(60)
    assert await status_of(url) == 404


async def test_a_token_is_good_for_its_kind_alone(stand: Stand) -> None:
    assert await status_of(stand.exec_url("true").replace("/exec/", "/attach/")) == 404


@pytest.mark.parametrize(
    "path", ["/", "/cri", "/cri/exec/", "/cri/exec/unknown", "/cri/other/x", "/metrics", "/cri/exec"]
)
async def test_nothing_else_is_there(stand: Stand, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert await status_of(stand.server.base_url + path, method=method) == 404
    assert await status_of(stand.exec_url("true"), method="PUT") == 404


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["Connection: Upgrade"],
        ["Upgrade: SPDY/3.1"],
        ["Connection: Upgrade", "Upgrade: SPDY/3.1"],
        ["Connection: Upgrade", "Upgrade: h2c"],
        ["Connection: Upgrade", "Upgrade: websocket"],
        ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: soap"],
        ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: ,"],
        [*SPDY, "Content-Length: 5"],
        [*SPDY, "Transfer-Encoding: chunked"],
    ],
)
async def test_requests_that_are_no_upgrade(stand: Stand, lines: list[str]) -> None:
    assert await status_of(stand.exec_url("true"), lines) == 400
    assert stand.opener.sessions == 0


async def test_protocols_that_nobody_speaks(stand: Stand) -> None:
    with pytest.raises(UpgradeFailed) as caught:
        await stand.spdy(stand.exec_url("true"), "v9.channel.k8s.io")
    assert caught.value.status == 403
    assert "X-Accepted-Stream-Protocol-Versions: v5.channel.k8s.io" in caught.value.head
    with pytest.raises(aiohttp.WSServerHandshakeError):
        async with connected(stand.exec_url("true"), "v9.channel.k8s.io"):
            pass


async def test_the_clients_order_of_protocols_counts(stand: Stand) -> None:
    client = await spdy_client.connect(
        stand.exec_url("true"), "v9.channel.k8s.io", "v3.channel.k8s.io, v4.channel.k8s.io"
    )
    stand.clients.append(client)
    assert "X-Stream-Protocol-Version: v3.channel.k8s.io" in client.head


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + 20_000 * b"x" + b"\r\n\r\n",
        b"GET /" + 20_000 * b"x" + b" HTTP/1.1\r\n\r\n",
        os.urandom(1000),
    ],
)
async def test_what_is_not_http(stand: Stand, data: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    assert answer == b"" or answer.split()[1] == b"400"


async def test_spdy_before_its_answer_is_not_taken(stand: Stand) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
    url = stand.exec_url("true").removeprefix(stand.server.base_url)
    head = "\r\n".join([f"POST {url} HTTP/1.1", "Host: x", *SPDY, "", ""]).encode()
    writer.write(head + b"\x80\x03\x00\x01" + bytes(100))
    assert b"101" in await reader.readline()
    writer.close()
    while stand.opener.sessions:
        await asyncio.sleep(0)


async def test_a_thousand_silent_connections(fresh: Stand) -> None:
    fresh.limits = StreamLimits(waiting_connections=16)
    await fresh.start()
    silent = []
    for _ in range(1000):
        _, writer = await asyncio.open_connection("127.0.0.1", fresh.server.port)
        silent.append(writer)
        if len(silent) % 3 == 0:
            writer.write(b"POST /cri/exec/")
    client = await fresh.spdy(fresh.exec_url("echo", "served", wishes=OUTPUT))
    _, stdout, _ = await client.opened("error", "stdout", "stderr")
    assert await stdout.read_all() == b"served\n"
    for writer in silent:
        writer.close()


async def test_a_connection_that_says_nothing_is_cut_off(fresh: Stand) -> None:
    fresh.limits = StreamLimits(request_seconds=0.05)
    await fresh.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", fresh.server.port)
    writer.write(b"POST /cri/exec/x HTTP/1.1\r\n")
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()


async def test_only_so_many_sessions(fresh: Stand) -> None:
    fresh.session_limit = 2
    await fresh.start()
    first = await fresh.spdy(fresh.exec_url("sleep", "9", wishes=OUTPUT))
    async with channels(fresh.exec_url("sleep", "9", wishes=OUTPUT)) as second:
        await second.read()
        assert await status_of(fresh.exec_url("true")) == 503
    await first.close()
    while fresh.opener.sessions:
        await asyncio.sleep(0)
    assert (await fresh.spdy(fresh.exec_url("true"))).head


async def test_an_idle_session_ends(fresh: Stand) -> None:
    fresh.limits = StreamLimits(idle_seconds=0.1, goodbye_seconds=0.01, linger_seconds=0.01)
    await fresh.start()
    client = await fresh.spdy(fresh.exec_url("sleep", "9", wishes=OUTPUT))
    error, *_ = await client.opened("error", "stdout", "stderr")
    assert "stream-idle-timeout" in json.loads(await error.read_all())["message"]
    assert fresh.process.killed
    async with channels(fresh.exec_url("sleep", "9", wishes=OUTPUT)) as channel_client:
        received = await channel_client.read_all()
        assert b"stream-idle-timeout" in received[3]
    forward = await fresh.spdy(fresh.forward_url(), "portforward.k8s.io")
    await forward.closed.wait()


async def test_sessions_are_told_that_the_daemon_stops(stand: Stand) -> None:
    client = await stand.spdy(stand.exec_url("sleep", "9", wishes=OUTPUT))
    error, *_ = await client.opened("error", "stdout", "stderr")
    forward = await stand.spdy(stand.forward_url(), "portforward.k8s.io")
    async with channels(stand.attach_url(stand.container, OUTPUT)) as attached:
        await attached.read()
        while len(stand.runtime.commands) + len(stand.runtime.containers[stand.container.id].attached) < 2:
            await asyncio.sleep(0)
        closing = asyncio.ensure_future(stand.server.close())
        assert "stopping" in json.loads(await error.read_all())["message"]
        assert b"stopping" in (await attached.read_all())[3]
        await client.close()
        await forward.closed.wait()
        await forward.close()
    await closing
    assert stand.process.killed
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", stand.server.port)
    await stand.server.close()


async def test_a_defect_ends_its_session_alone(stand: Stand) -> None:
    stand.runtime.faults.fail["open_exec"] = RuntimeError("defect")
    client = await stand.spdy(stand.exec_url("true", wishes=OUTPUT))
    await client.opened("error", "stdout", "stderr")
    await client.closed.wait()
    async with channels(stand.exec_url("true", wishes=OUTPUT)) as channel_client:
        await channel_client.read_all()
    stand.runtime.faults.fail.clear()
    client = await stand.spdy(stand.exec_url("echo", "x", wishes=OUTPUT))
    _, stdout, _ = await client.opened("error", "stdout", "stderr")
    assert await stdout.read_all() == b"x\n"


async def test_fifty_sessions_at_once(stand: Stand) -> None:
    async def one(number: int) -> None:
        text = str(number).encode() * 10_000
        client = await stand.spdy(stand.exec_url("cat"))
        error, stdin, stdout, _ = await client.opened("error", "stdin", "stdout", "stderr")
        await stdin.write(text, fin=True)
        assert await stdout.read_all() == text
        await error.read_all()
        await client.close()

    await asyncio.gather(*(one(number) for number in range(50)))


class TestAttach:
    async def test_several_clients_see_the_same(self, stand: Stand) -> None:
        container = stand.runtime.containers[stand.container.id]
        first = await stand.spdy(stand.attach_url(stand.container, OUTPUT))
        _, stdout, stderr = await first.opened("error", "stdout", "stderr")
        async with channels(stand.attach_url(stand.container, OUTPUT)) as second:
            while len(container.attached) < 2:
                await asyncio.sleep(0)
            await container.put(b"both\n")
            await container.put(b"err\n", stderr=True)
            await stdout.read_until(b"both\n")
            await stderr.read_until(b"err\n")
            await second.read_until(1, b"both\n")
            await second.read_until(2, b"err\n")
        while len(container.attached) > 1:
            await asyncio.sleep(0)
        await container.put(b"one\n")
        await stdout.read_until(b"one\n")
        assert not container.ended.done()

    async def test_the_containers_end_is_a_success(self, stand: Stand) -> None:
        """Its exit code is in its status, and is none of the client's doing."""
        container = stand.runtime.containers[stand.container.id]
        client = await stand.spdy(stand.attach_url(stand.container, OUTPUT))
        error, stdout, _ = await client.opened("error", "stdout", "stderr")
        while not container.attached:
            await asyncio.sleep(0)
        await container.put(b"last words")
        await container.end(3)
        assert await stdout.read_all() == b"last words"
        assert json.loads(await error.read_all())["status"] == "Success"

    @pytest.mark.parametrize("once", [True, False])
    async def test_the_end_of_input_is_the_containers_only_if_so_created(self, stand: Stand, *, once: bool) -> None:
        record = stand.add_container("in", stdin=True, stdin_once=once)
        container = stand.runtime.containers[record.id]
        client = await stand.spdy(stand.attach_url(record, ALL))
        _, stdin, *_ = await client.opened("error", "stdin", "stdout", "stderr")
        await stdin.write(b"text", fin=True)
        assert await container.stdin.read(100) == b"text"
        if once:
            assert await container.stdin.read(100) == b""
        else:
            other = await stand.spdy(stand.attach_url(record, ALL))
            _, stdin, *_ = await other.opened("error", "stdin", "stdout", "stderr")
            await stdin.write(b"more")
            assert await container.stdin.read(100) == b"more"

    async def test_input_for_a_container_without_any_is_thrown_away(self, stand: Stand) -> None:
        client = await stand.spdy(stand.attach_url(stand.container, ALL))
        error, stdin, *_ = await client.opened("error", "stdin", "stdout", "stderr")
        for _ in range(50):
            await stdin.write(bytes(100_000))
        container = stand.runtime.containers[stand.container.id]
        await container.end(0)
        assert json.loads(await error.read_all())["status"] == "Success"

    async def test_the_containers_own_terminal(self, stand: Stand) -> None:
        record = stand.add_container("tty", tty=True, stdin=True)
        container = stand.runtime.containers[record.id]
        wishes = StreamWishes(stdin=True, stdout=True, terminal=True)
        client = await stand.spdy(stand.attach_url(record, wishes))
        *_, resize = await client.opened("error", "stdin", "stdout", "resize")
        await resize.write(b'{"Width":80,"Height":24}')
        while not container.sizes:
            await asyncio.sleep(0)
        assert container.sizes == [(80, 24)]
        plain = await stand.spdy(stand.attach_url(record, OUTPUT))
        _, _, stderr = await plain.opened("error", "stdout", "stderr")
        while len(container.attached) < 2:
            await asyncio.sleep(0)
        assert container.attached[1].stderr is None
        await container.end(0)
        assert await stderr.read_all() == b""


class TestAddresses:
    async def test_what_clients_are_told(self, stand: Stand) -> None:
        assert stand.server.base_url == f"http://127.0.0.1:{stand.server.port}"
        for address, told in (("::1", "[::1]"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]")):
            server = StreamServer(take=stand.tokens.take, opener=stand.opener, options=ServerOptions(address=address))
            with pytest.raises(Unavailable):
                server.base_url  # noqa: B018  # the property is what is tried
            await server.start()
            assert server.base_url == f"http://{told}:{server.port}"
            assert await status_of(server.base_url + "/") == 404
            await server.close()

    async def test_a_taken_port_is_named(self, stand: Stand) -> None:
        server = StreamServer(
            take=stand.tokens.take, opener=stand.opener, options=ServerOptions(port=stand.server.port)
        )
        with pytest.raises(HostFailure, match=f"websocket-server-listening-port.*{stand.server.port}"):
            await server.start()
        await server.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


async def test_tls(fresh: Stand, certificates: Certificates) -> None:
    fresh.tls = certificates.server_context()
    await fresh.start()
    context = certificates.client_context()
    assert fresh.server.base_url.startswith("https://127.0.0.1:")
    client = await spdy_client.connect(fresh.exec_url("cat"), "v4.channel.k8s.io", context=context)
    fresh.clients.append(client)
    error, stdin, stdout, _ = await client.opened("error", "stdin", "stdout", "stderr")
    await stdin.write(bytes(1_000_000), fin=True)
    assert len(await stdout.read_all()) == 1_000_000
    assert json.loads(await error.read_all())["status"] == "Success"
    url = fresh.exec_url("sh", "-c", "exit 4", wishes=OUTPUT)
    async with channels(url, context=context) as channel_client:
        assert b'"4"' in (await channel_client.read_all())[3]


async def test_plain_http_to_a_tls_port(fresh: Stand, certificates: Certificates) -> None:
    fresh.tls = certificates.server_context()
    await fresh.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", fresh.server.port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        assert b"HTTP" not in await reader.read()
    writer.close()


async def test_as_many_tokens_as_there_may_be(stand: Stand) -> None:
    urls = [stand.exec_url("true") for _ in range(MOST_TOKENS)]
    assert len(set(urls)) == MOST_TOKENS


async def test_a_command_of_many_words_is_run_as_given(stand: Stand) -> None:
    seen: list[list[str]] = []

    async def show(process: ScriptedProcess) -> int:
        seen.append(process.args)
        return 0

    stand.runtime.programs["show"] = show
    client = await stand.spdy(stand.exec_url("show", "a b", "", "é", wishes=OUTPUT))
    error, *_ = await client.opened("error", "stdout", "stderr")
    await error.read_all()
    assert seen == [["show", "a b", "", "é"]]
