"""Requests that are redirected, put off, cut short or never answered."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.images import manifest as manifests
from isulad_py.model.errors import (
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from tests.fakes.registry import FakeRegistry, Handler, cut_after
from tests.images import make_image
from tests.unit.images.stand import (
    FAST,
    GIVEN,
    IMPATIENT,
    LOGIN,
    Stand,
    answering,
    file_layer,
    refused,
    small_image,
)


@pytest.mark.parametrize("size", [manifests.MANIFEST_LIMIT + 1, 1 << 30])
async def test_a_manifest_that_is_announced_as_enormous_is_not_read(stand: Stand, size: int) -> None:
    name = stand.registry.put("app", "v1", small_image())

    async def enormous(request: web.Request, _: Handler) -> web.StreamResponse:
        return await cut_after(request, b"{" * 1000, 1000) if size < 0 else await announce(request, size)

    async def announce(request: web.Request, size: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(size), "Content-Type": manifests.OCI_MANIFEST})
        await response.prepare(request)
        await response.write(b"{")
        return response

    stand.registry.tricks["manifest"] = enormous
    await refused(stand, name, ResourceExhausted, f"resolve: an answer of {size} bytes")


async def test_a_manifest_without_end_is_given_up(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())

    async def endless(request: web.Request, _: Handler) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": manifests.OCI_MANIFEST})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(b"[" * 100_000)

    stand.registry.tricks["manifest"] = endless
    await refused(stand, name, ResourceExhausted, f"more than {manifests.MANIFEST_LIMIT} bytes")


@pytest.mark.parametrize("kind", ["manifest", "blob"])
async def test_a_registry_that_never_answers(stand: Stand, kind: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    released = asyncio.Event()

    async def silent(_: web.Request, __: Handler) -> web.StreamResponse:
        await released.wait()
        return web.Response()

    stand.registry.tricks[kind] = silent
    try:
        await refused(stand, name, Unavailable, "stalled: nothing came for 0.3 s", options=IMPATIENT)
    finally:
        released.set()


async def test_a_head_that_only_drips(stand: Stand) -> None:
    """Every byte of it would reset a timer that waits for the next one."""
    answers: list[asyncio.Task[None] | None] = []

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.append(asyncio.current_task())
        writer.write(b"HTTP/1.1 200 OK\r\n")
        gone = asyncio.create_task(reader.read())
        while not gone.done():
            writer.write(b"x")
            await asyncio.wait({gone}, timeout=0.02)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await refused(stand, f"127.0.0.1:{port}/app:v1", Unavailable, "stalled: nothing came", options=IMPATIENT)
    finally:
        server.close()
        await asyncio.gather(*filter(None, answers))


@pytest.mark.parametrize("kind", ["manifest", "blob", "token"])
async def test_a_document_that_only_drips(stand: Stand, kind: str) -> None:
    """For a blob: the configuration."""
    image = small_image()
    name = stand.registry.put("app", "v1", image)
    stand.registry.tokens = kind == "token"

    async def drip(request: web.Request, handler: Handler) -> web.StreamResponse:
        if kind == "blob" and request.match_info["name"] != image.image_id:
            return await handler(request)
        response = web.StreamResponse(headers={"Content-Type": manifests.OCI_MANIFEST})
        await response.prepare(request)
        for _ in range(4000):
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    stand.registry.tricks[kind] = drip
    await refused(stand, name, Unavailable, "stalled: ([0-9]+ bytes in|nothing came)", options=IMPATIENT)


async def test_a_busy_registry_is_asked_again(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    busy = iter([429, 503, 500])

    async def sometimes(request: web.Request, handler: Handler) -> web.StreamResponse:
        status = next(busy, 0)
        return web.Response(status=status, headers={"Retry-After": "0"}) if status else await handler(request)

    stand.registry.tricks["manifest"] = sometimes
    await stand.pull(name)
    assert stand.registry.count("/manifests/") == 4


@pytest.mark.parametrize("when", ["7200", "Fri, 01 Jan 2100 00:00:00 GMT"])
async def test_a_registry_that_wants_too_much_patience_is_away(stand: Stand, when: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tricks["manifest"] = answering(status=429, headers={"Retry-After": when})
    await refused(stand, name, Unavailable, "HTTP 429: asks to come back in")
    assert stand.registry.count("/manifests/") == 1


async def test_a_loop_of_redirects(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())

    async def around(request: web.Request, _: Handler) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": request.path_qs})

    stand.registry.tricks["blob"] = around
    await refused(stand, name, Unavailable, "more than 5 redirects")


@pytest.mark.parametrize("location", ["", "ftp://example/x", "http://", "http://[::1", "file:///etc/passwd", "\x01"])
async def test_redirects_to_nonsense(stand: Stand, location: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    headers = {"Location": location} if location.isprintable() else {"Location": "http://a b/"}
    stand.registry.tricks["blob"] = answering(status=302, headers=headers)
    await refused(stand, name, Unavailable, "fetch configuration")


async def test_nobody_there(stand: Stand) -> None:
    words = (
        r"registry 127.0.0.1:1: image 127.0.0.1:1/app:v1: resolve: cannot connect to 127.0.0.1:1: connection refused$"
    )
    await refused(stand, "127.0.0.1:1/app:v1", Unavailable, words)


async def test_a_name_that_does_not_exist(stand: Stand) -> None:
    words = r"registry registry.invalid: .*resolve: cannot connect to registry.invalid:443: [a-z ,]+$"
    await refused(stand, "registry.invalid/app:v1", Unavailable, words)


async def test_who_does_not_speak_tls(stand: Stand) -> None:
    mirrors = {"registry.example": (f"https://{stand.registry.host}",)}
    with pytest.raises(Unavailable, match=rf"registry {stand.registry.host}: .*resolve: no TLS: wrong version number$"):
        await stand.pull("registry.example/app:v1", replace(FAST, mirrors=mirrors, connect_seconds=1))


@pytest.mark.parametrize("mirror", ["http://host:99999", "http://host:abc", "http://[::1", "host:70000/prefix"])
async def test_a_mirror_with_an_address_that_cannot_be(stand: Stand, mirror: str) -> None:
    """Validation of the configuration refuses it (config/validate_storage.py): here it is one endpoint that fails."""
    name = stand.registry.put("app", "v1", small_image())
    options = replace(FAST, mirrors={stand.registry.host: (mirror,)})
    await stand.pull(name, options)
    with pytest.raises(Unavailable, match="resolve: an address that cannot be asked"):
        await stand.pull("x.invalid/app:v1", replace(FAST, mirrors={"x.invalid": (mirror,)}, connect_seconds=1))


async def test_no_more_connections_to_a_host_than_the_options_say(stand: Stand) -> None:
    image = make_image([file_layer(str(number)) for number in range(12)])
    names = [stand.registry.put(f"app{number}", "v1", image) for number in range(3)]
    under_way = most = 0
    gate = asyncio.Event()

    async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            gate.set()
        await gate.wait()
        answer = await handler(request)
        under_way -= 1
        return answer

    stand.registry.tricks["blob"] = counted
    source = stand.source(replace(FAST, connections_per_host=2))
    await asyncio.gather(*(source.pull(PullRequest(reference=parse(name))) for name in names))
    assert most == 2


async def test_a_redirect_to_another_host_takes_no_credentials_along(stand: Stand) -> None:
    stand.registry.login = LOGIN
    image = small_image()
    name = stand.registry.put("app", "v1", image)
    async with FakeRegistry().serve() as store:
        store.put("app", "v1", image)

        async def elsewhere(request: web.Request, _: Handler) -> web.StreamResponse:
            return web.Response(status=307, headers={"Location": f"http://{store.host}{request.path_qs}?signature=x"})

        stand.registry.tricks["blob"] = elsewhere
        await stand.pull(name, credentials=GIVEN)
        assert store.count("signature=x") == 2
        assert set(store.authorizations) == {""}
        store.login = LOGIN
        with pytest.raises(Unauthenticated, match="HTTP 401"):
            await stand.pull(name, credentials=GIVEN)
        assert set(store.authorizations) == {""}


async def test_a_redirect_within_the_host_keeps_them(stand: Stand) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())

    async def moved(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "moved" in request.query:
            return await handler(request)
        return web.Response(status=301, headers={"Location": f"{request.path}?moved=1"})

    stand.registry.tricks["blob"] = moved
    await stand.pull(name, credentials=GIVEN)


async def test_the_proxy_of_the_environment(stand: Stand) -> None:
    """An HTTP proxy is asked as if it were the registry."""
    stand.registry.put("library/app", "v1", small_image())
    options = replace(
        FAST,
        mirrors={"docker.io": ("http://registry.invalid",)},
        proxies={"http": stand.registry.host, "no": "localhost,.internal"},
    )
    record = await stand.pull("docker.io/library/app:v1", options)
    assert record.repo_tags == ("docker.io/library/app:v1",)
