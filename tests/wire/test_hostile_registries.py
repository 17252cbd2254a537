"""What a kubelet is told when a registry misbehaves: the true code, never UNKNOWN; registry, image and step.

A real registry client and layer store behind the real engine and server; the registry does worse than any.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.engine.handlers import Handlers
from isulad_py.engine.images import Images
from isulad_py.engine.registry import Registry
from isulad_py.host.clock import SystemClock
from isulad_py.images.adapter import RegistryImages
from isulad_py.storage.layers import LayerStore
from isulad_py.wire.cri.table import cri_methods
from isulad_py.wire.interceptor import Interceptor
from isulad_py.wire.listener import UnixListener
from isulad_py.wire.server import Server
from tests.cri_client import Cri, connect_async
from tests.fakes.records import MemoryRecords
from tests.fakes.registry import FakeRegistry, Handler, cut_after, error
from tests.fakes.services import FakeEngine
from tests.fakes.storage import MemoryLayers, MemoryRootFilesystems
from tests.fakes.tasks import TestTasks
from tests.unit.images.stand import FAST, answering, small_image
from tests.wire.conftest import SeenCalls

Code = grpc.StatusCode


@dataclass
class World:
    registry: FakeRegistry
    store: LayerStore
    client: Cri
    tasks: TestTasks
    name: str

    async def pull(self, name: str = "", **auth: str) -> Any:
        request = self.client.m.PullImageRequest(image={"image": name or self.name}, auth=auth)
        return await self.client.image.PullImage(request)

    async def refused(self, name: str = "") -> tuple[Code, str]:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.pull(name)
        assert await self.store.present() == frozenset()
        return caught.value.code(), caught.value.details() or ""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    tasks, clock, seen = TestTasks(), SystemClock(), SeenCalls()
    store = await LayerStore.open(str(tmp_path / "graph"), tasks=tasks, clock=clock, boot_id="boot")
    source = RegistryImages(layers=store, options=replace(FAST, tries=2, stall_seconds=2), clock=clock)
    records: Any = MemoryRecords()
    rootfs: Any = MemoryRootFilesystems(MemoryLayers())
    images = Images(
        records=records,
        registry=Registry(records=records),
        source=source,
        layers=store,
        rootfs=rootfs,
        tasks=tasks,
        clock=clock,
        handlers=Handlers(names=("runc",), default="runc"),
        sandbox_image="pause",
    )
    methods = cri_methods(dataclasses.replace(FakeEngine().services(), images=images))
    server = Server(answer=Interceptor(methods=methods, metrics=seen, clock=clock), tasks=tasks)
    listener = UnixListener(str(tmp_path / "cri.sock"))
    await server.start(listener.open())
    async with FakeRegistry().serve() as registry, connect_async(f"unix://{listener.path}") as client:
        name = registry.put("app", "v1", small_image())
        yield World(registry, store, client, tasks, name)
        await client.channel.close()
        await server.stop(0)
        listener.remove()
        await source.close()
    await tasks.settle()


Trick = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]


async def silent(_: web.Request, __: Handler) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def longer(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer: Any = await handler(request)
    return web.Response(body=answer.body + b"x", headers={"Content-Type": answer.headers["Content-Type"]})


async def shorter(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer: Any = await handler(request)
    return web.Response(body=answer.body[:-1], headers={"Content-Type": answer.headers["Content-Type"]})


async def another(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer: Any = await handler(request)
    return web.Response(body=bytes(len(answer.body)), headers=answer.headers)


async def cut(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer: Any = await handler(request)
    return await cut_after(request, answer.body, len(answer.body) // 2)


async def around(request: web.Request, _: Handler) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": request.path_qs})


async def enormous(request: web.Request, _: Handler) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": str(1 << 30)})
    await response.prepare(request)
    return response


def said(status: int, code: str) -> Trick:
    async def answer(_: web.Request, __: Handler) -> web.StreamResponse:
        return error(status, code, "so be it")

    return answer


HTML = answering(text="<html>log in</html>", content_type="text/html")
CASES: list[tuple[str, str, Trick, Code, str]] = [
    ("lies about sizes: more", "blob", longer, Code.DATA_LOSS, "fetch configuration"),
    ("lies about sizes: less", "blob", shorter, Code.DATA_LOSS, "fetch configuration"),
    ("sends another blob", "blob", another, Code.DATA_LOSS, "came with digest"),
    ("sends another manifest", "manifest", another, Code.DATA_LOSS, "came with digest"),
    ("cuts the manifest", "manifest", cut, Code.UNAVAILABLE, "resolve"),
    ("cuts blobs", "blob", cut, Code.UNAVAILABLE, "fetch configuration"),
    ("loops redirects", "manifest", around, Code.UNAVAILABLE, "more than 5 redirects"),
    ("answers HTML", "manifest", HTML, Code.UNAVAILABLE, "a web page"),
    ("never answers", "manifest", silent, Code.UNAVAILABLE, "stalled"),
    ("never sends a blob", "blob", silent, Code.UNAVAILABLE, "stalled"),
    ("sends a manifest of a gigabyte", "manifest", enormous, Code.RESOURCE_EXHAUSTED, "1073741824 bytes"),
    ("is busy for ever", "manifest", said(429, "TOOMANYREQUESTS"), Code.UNAVAILABLE, "HTTP 429"),
    ("is broken", "manifest", said(500, "UNKNOWN"), Code.UNAVAILABLE, "HTTP 500"),
    ("has no such image", "manifest", said(404, "MANIFEST_UNKNOWN"), Code.NOT_FOUND, "MANIFEST_UNKNOWN"),
    ("has lost a blob", "blob", said(404, "BLOB_UNKNOWN"), Code.NOT_FOUND, "BLOB_UNKNOWN"),
    ("denies", "manifest", said(403, "DENIED"), Code.PERMISSION_DENIED, "DENIED"),
    ("says teapot", "manifest", said(418, "TEAPOT"), Code.UNAVAILABLE, "HTTP 418"),
]


@pytest.mark.parametrize(("kind", "trick", "code", "words"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
async def test_a_registry_that(world: World, kind: str, trick: Trick, code: Code, words: str) -> None:
    world.registry.tricks[kind] = trick
    found, details = await world.refused()
    assert found is code, details
    assert details.startswith(f"registry {world.registry.host}: image {world.name}: ")
    assert words in details
    del world.registry.tricks[kind]
    assert (await world.pull()).image_ref.startswith("sha256:"), "and it can be pulled when the registry is well again"


TOKENS: list[tuple[str, Trick, Code]] = [
    ("that never answers", silent, Code.UNAVAILABLE),
    ("that is broken", answering(status=500), Code.UNAVAILABLE),
    ("that wants a login", answering(status=401), Code.UNAUTHENTICATED),
    ("that denies", answering(status=403), Code.PERMISSION_DENIED),
    ("that answers HTML", HTML, Code.DATA_LOSS),
    ("that answers nothing", answering(text="{}"), Code.DATA_LOSS),
    ("that loops", around, Code.UNAVAILABLE),
    ("that answers a gigabyte", enormous, Code.RESOURCE_EXHAUSTED),
]


@pytest.mark.parametrize(("trick", "code"), [case[1:] for case in TOKENS], ids=[case[0] for case in TOKENS])
async def test_a_token_service(world: World, trick: Trick, code: Code) -> None:
    world.registry.tokens = True
    world.registry.tricks["token"] = trick
    found, details = await world.refused()
    assert found is code, details
    assert details.startswith(f"registry {world.registry.host}: image {world.name}: resolve: ")


async def test_credentials(world: World) -> None:
    world.registry.login = ("user", "secret")
    assert (await world.refused())[0] is Code.UNAUTHENTICATED
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.pull(username="user", password="guess")
    assert caught.value.code() is Code.UNAUTHENTICATED
    assert "guess" not in (caught.value.details() or "")
    await world.pull(username="user", password="secret")


async def test_nobody_there_and_no_such_name(world: World) -> None:
    for name in ("127.0.0.1:1/app:v1", "registry.invalid/app:v1"):
        code, details = await world.refused(name)
        assert code is Code.UNAVAILABLE
        assert details.startswith(f"registry {name.partition('/')[0]}: image {name}: resolve: cannot connect to ")
        assert "object at 0x" not in details


async def test_a_client_that_goes_away_or_whose_time_is_up_ends_the_pull(world: World) -> None:
    entered, left = asyncio.Event(), asyncio.Event()

    async def held(_: web.Request, __: Handler) -> web.StreamResponse:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            left.set()
        raise AssertionError

    for place in ("manifest", "blob"):
        world.registry.tricks = {place: held}
        for ended_by in ("cancel", "deadline"):
            entered.clear()
            left.clear()
            request = world.client.m.PullImageRequest(image={"image": world.name})
            call = world.client.image.PullImage(request, timeout=0.2 if ended_by == "deadline" else None)
            asked = asyncio.ensure_future(entered.wait())
            await asyncio.wait({asked, asyncio.ensure_future(call.code())}, return_when=asyncio.FIRST_COMPLETED)
            reached = asked.done()
            asked.cancel()
            if ended_by == "cancel":
                assert reached
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            else:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert caught.value.code() is Code.DEADLINE_EXCEEDED
            if reached:  # on a busy machine a deadline can pass before the registry is asked
                await asyncio.wait_for(left.wait(), 20)
    world.registry.tricks = {}
    await world.pull()


async def test_a_manifest_that_lies_about_its_layers(world: World) -> None:
    image = small_image("one")
    for field, value in (("size", 1), ("size", 1 << 50), ("digest", "sha256:" + "0" * 64)):
        document = json.loads(image.document)
        document["layers"][0][field] = value
        body = json.dumps(document)
        media_type = image.media_type
        world.registry.put("lies", "v1", image)
        world.registry.tricks["manifest"] = answering(body=body.encode(), headers={"Content-Type": media_type})
        code, details = await world.refused(f"{world.registry.host}/lies:v1")
        assert code in {Code.DATA_LOSS, Code.NOT_FOUND}, details
        assert "layer sha256:" in details
