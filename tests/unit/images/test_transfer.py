"""Layers on their way: resumed, noticed when damaged, stopped when hostile."""

from __future__ import annotations

import asyncio
import os
import random
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.host.handover import Handover
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from tests.fakes.registry import Handler, cut_after, range_start
from tests.images import File, layer_of, make_image, tar_layer
from tests.unit.images.stand import (
    FAST,
    IMPATIENT,
    Stand,
    file_layer,
    layer_blob,
    refused,
    small_image,
)


async def test_another_blob_than_asked_for(stand: Stand) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)
    blob = layer_blob(image)
    stand.registry.blobs[blob] = stand.registry.blobs[blob][:-1] + b"X"
    await refused(stand, name, DataLoss, f"fetch layer {blob}: blob {blob} came with digest")


@pytest.mark.parametrize("change", [-1, 1, 1000])
async def test_a_blob_announced_with_another_size(stand: Stand, change: int) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)
    blob = layer_blob(image)
    size = len(stand.registry.blobs[blob])
    stand.registry.blobs[blob] = (stand.registry.blobs[blob] + bytes(1000))[: size + change]
    await refused(stand, name, DataLoss, f"the registry sends {size + change} bytes, the manifest says {size}")


async def test_a_blob_that_goes_on_and_on(stand: Stand) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)

    async def endless(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == image.image_id:
            return await handler(request)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(bytes(10_000))

    stand.registry.tricks["blob"] = endless
    await refused(stand, name, DataLoss, "is longer than the")


async def test_a_connection_cut_at_every_byte(stand: Stand) -> None:
    """Each time a little further: as long as there is progress to speak of, it goes on; without, it ends."""
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)

    async def one_byte(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == image.image_id:
            return await handler(request)
        data = stand.registry.blobs[request.match_info["name"]]
        start = range_start(request) or 0
        status = 206 if start else 200
        headers = {"Content-Length": str(len(data) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        await response.write(data[start : start + 1])
        assert request.transport is not None
        request.transport.close()
        return response

    stand.registry.tricks["blob"] = one_byte
    await refused(stand, name, Unavailable, "fetch layer .*connection broke")
    assert stand.registry.count("bytes=") == FAST.tries - 1


@pytest.mark.parametrize("ranges", [True, False])
async def test_a_broken_blob_is_resumed(stand: Stand, ranges: bool) -> None:
    noise = random.Random(1).randbytes(3_000_000)
    image = make_image([file_layer("big", noise)])
    name = stand.registry.put("app", "v1", image)
    cuts = iter([100_000, 1_500_000, 2_900_000])

    async def cut(request: web.Request, handler: Handler) -> web.StreamResponse:
        data = stand.registry.blobs[request.match_info["name"]]
        size = next(cuts, None) if len(data) > 1_000_000 else None
        if size is None:
            return await handler(request) if ranges else web.Response(body=data)
        start = (range_start(request) or 0) if ranges else 0
        if not start:
            return await cut_after(request, data, size)
        headers = {
            "Content-Length": str(len(data) - start),
            "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}",
        }
        response = web.StreamResponse(status=206, headers=headers)
        await response.prepare(request)
        await response.write(data[start:size])
        assert request.transport is not None
        request.transport.close()
        return response

    stand.registry.tricks["blob"] = cut
    record = await stand.pull(name)
    assert Path(stand.store.paths.diff(record.layers[0].chain_id), "big").read_bytes() == noise
    assert stand.registry.count("bytes=") >= 1


async def test_a_connection_broken_behind_the_last_byte(stand: Stand) -> None:
    """All of a chunked blob is there, but not the mark of its end: there is nothing to ask for."""
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)

    async def endless(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == image.image_id:
            return await handler(request)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(stand.registry.blobs[request.match_info["name"]])
        assert request.transport is not None
        request.transport.close()
        return response

    stand.registry.tricks["blob"] = endless
    await stand.pull(name)
    assert stand.registry.count("bytes=") == 0


async def test_a_wrong_range_is_noticed(stand: Stand) -> None:
    noise = random.Random(1).randbytes(300_000)
    image = make_image([file_layer("big", noise)])
    name = stand.registry.put("app", "v1", image)

    async def wrong(request: web.Request, handler: Handler) -> web.StreamResponse:
        data = stand.registry.blobs[request.match_info["name"]]
        if len(data) < 100_000:
            return await handler(request)
        if range_start(request) is None:
            return await cut_after(request, data, 100_000)
        headers = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}"}
        return web.Response(status=206, body=data, headers=headers)

    stand.registry.tricks["blob"] = wrong
    await refused(stand, name, Unavailable, r"asked for bytes from \d+, got 'bytes 0-")


async def test_a_blob_that_only_drips(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", make_image([file_layer("big", random.Random(2).randbytes(100_000))]))

    async def drip(request: web.Request, handler: Handler) -> web.StreamResponse:
        data = stand.registry.blobs[request.match_info["name"]]
        if len(data) < 50_000:
            return await handler(request)
        start = range_start(request) or 0
        headers = {"Content-Length": str(len(data) - start), "Content-Range": f"bytes {start}-"}
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        for at in range(start, len(data)):
            await response.write(data[at : at + 1])
            await asyncio.sleep(0.05)
        return response

    stand.registry.tricks["blob"] = drip
    options = replace(IMPATIENT, tries=2)
    await refused(stand, name, Unavailable, "stalled: ([0-9]+ bytes in|nothing came)", options=options)


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda: file_layer("../escape"), DataLoss, r"unpack layer .*'\.\./escape' climbs out"),
        (lambda: layer_of(b"this is no archive at all" * 100), DataLoss, "registry .*: unpack layer .*: tar: "),
        (lambda: layer_of(b"\x1f\x8bbroken", "none"), DataLoss, "gzip"),
        (lambda: layer_of(unknown_entry()), Unsupported, "unknown kind"),
    ],
)
async def test_hostile_layers(stand: Stand, build: Callable[[], Any], kind: type[EngineError], words: str) -> None:
    layer = build()
    name = stand.registry.put("app", "v1", make_image([file_layer("good"), layer]))
    await refused(stand, name, kind, words)
    assert stand.registry.count(f"blobs/{layer.digest}") == 1


def unknown_entry() -> bytes:
    info = tarfile.TarInfo("strange")
    info.type = b"V"
    info.uid, info.gid = os.geteuid(), os.getegid()
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


async def test_a_layer_failing_for_the_disk_is_not_asked_elsewhere(stand: Stand) -> None:
    image = small_image()
    name = stand.registry.put("app", "v1", image)
    options = replace(FAST, limits=replace(FAST.limits, entries=0))
    with pytest.raises(ResourceExhausted, match="more than 0 entries"):
        await stand.pull(name, options)


async def test_a_cancelled_pull_ends_in_the_midst_of_what_a_name_implies(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred bytes ask for thousands of directories: nothing more has to come for that."""
    deep = [File(f"{number}/" + "a/" * 300 + "f", uid=os.geteuid(), gid=os.getegid()) for number in range(20)]
    name = stand.registry.put("app", "v1", make_image([tar_layer(deep)]))
    asked, begun = 0, asyncio.Event()
    loop, take = asyncio.get_running_loop(), stand.store.take
    aborted = threading.Event()
    abort = Handover.abort

    def told(handover: Handover) -> None:
        abort(handover)
        aborted.set()

    def noted(used_bytes: int, inodes: int) -> None:
        nonlocal asked
        asked += 1
        if asked == 500:
            loop.call_soon_threadsafe(begun.set)
            aborted.wait()
        take(used_bytes, inodes)

    monkeypatch.setattr(stand.store, "take", noted)
    monkeypatch.setattr(Handover, "abort", told)
    pull = asyncio.ensure_future(stand.pull(name))
    await begun.wait()
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    await stand.close()
    assert asked == 500
