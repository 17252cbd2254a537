"""Where an image is looked for, and what a registry's answers mean."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from tests.fakes.registry import FakeRegistry, Handler, error
from tests.unit.images.stand import (
    FAST,
    Stand,
    answering,
    refused,
    small_image,
)


async def test_a_web_page_is_no_manifest(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tricks["manifest"] = answering(text="<html>Welcome</html>", content_type="text/html")
    await refused(stand, name, Unavailable, f"registry {stand.registry.host}: .*resolve: a web page")


async def test_another_document_than_the_digest_asked_for(stand: Stand) -> None:
    image, other = small_image("a"), small_image("b")
    stand.registry.put("app", "v1", image)
    stand.registry.tricks["manifest"] = answering(body=other.document, content_type=other.media_type)
    name = f"{stand.registry.host}/app@{image.digest}"
    await refused(stand, name, DataLoss, f"resolve: manifest {image.digest} came with digest {other.digest}")


async def test_another_document_than_the_header_says(stand: Stand) -> None:
    image = small_image()
    name = stand.registry.put("app", "v1", image)
    headers = {"Docker-Content-Digest": "sha256:" + "0" * 64, "Content-Type": image.media_type}
    stand.registry.tricks["manifest"] = answering(body=image.document, headers=headers)
    await refused(stand, name, DataLoss, "came with digest")


async def test_another_configuration_than_asked_for(stand: Stand) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)
    stand.registry.blobs[image.image_id] = stand.registry.blobs[image.image_id].replace(b"linux", b"sysv4")
    await refused(stand, name, DataLoss, f"fetch configuration: blob {image.image_id} came with digest")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, PermissionDenied), (404, NotFound), (400, Unavailable), (418, Unavailable), (500, Unavailable)],
)
@pytest.mark.parametrize("place", ["manifest", "blob"])
async def test_the_registrys_own_words_are_told(stand: Stand, place: str, status: int, kind: type[EngineError]) -> None:
    name = stand.registry.put("app", "v1", small_image())

    async def refuse(_: web.Request, __: Handler) -> web.StreamResponse:
        return error(status, "DENIED", "because\nwe can")

    stand.registry.tricks[place] = refuse
    await refused(stand, name, kind, f"HTTP {status} DENIED: becausewe can")


async def test_a_name_that_the_registry_does_not_take_is_the_requests_fault(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())

    async def refuse(_: web.Request, __: Handler) -> web.StreamResponse:
        return error(400, "NAME_INVALID", "invalid repository name")

    stand.registry.tricks["manifest"] = refuse
    await refused(stand, name, InvalidInput, "resolve: HTTP 400 NAME_INVALID: invalid repository name")


async def test_mirrors_are_asked_in_order_and_the_registry_last(stand: Stand) -> None:
    image = small_image()
    stand.registry.put("library/app", "v1", image)
    async with FakeRegistry().serve() as empty, FakeRegistry().serve() as broken:
        broken.tricks["manifest"] = lambda *_: _refuse(500)
        mirrors = (f"http://{broken.host}", f"http://{empty.host}", f"http://{stand.registry.host}")
        options = replace(FAST, mirrors={"docker.io": mirrors}, tries=1)
        record = await stand.pull("app:v1", options)
        assert record.repo_tags == ("docker.io/library/app:v1",)
        assert record.repo_digests == (f"docker.io/library/app@{image.digest}",)
        assert broken.count("/manifests/") == 1
        assert empty.count("/manifests/") == 1
        assert broken.count("/blobs/") == empty.count("/blobs/") == 0


async def _refuse(status: int) -> web.StreamResponse:
    return error(status, "DENIED", "no")


async def test_a_mirror_without_the_blob_or_with_a_damaged_one(stand: Stand) -> None:
    image = small_image("a", "b")
    stand.registry.put("app", "v1", image)
    async with FakeRegistry().serve() as mirror:
        mirror.put("app", "v1", image)
        first, second = (layer["digest"] for layer in json.loads(image.document)["layers"])
        del mirror.blobs[first]
        mirror.blobs[second] = mirror.blobs[second][:-3] + b"xyz"
        options = replace(FAST, mirrors={stand.registry.host: (f"http://{mirror.host}",)})
        await stand.pull(f"{stand.registry.host}/app:v1", options)
        assert mirror.count(f"blobs/{first}") == mirror.count(f"blobs/{second}") == 1


async def test_when_all_fail_each_is_told(stand: Stand) -> None:
    async with FakeRegistry().serve() as mirror:
        mirror.tricks["manifest"] = lambda *_: _refuse(403)
        options = replace(FAST, mirrors={stand.registry.host: (f"http://{mirror.host}",)})
        with pytest.raises(NotFound) as caught:
            await stand.pull(f"{stand.registry.host}/app:v1", options)
        assert f"registry {mirror.host}" in str(caught.value)
        assert "HTTP 403" in str(caught.value)
    mirrored = replace(FAST, mirrors={"127.0.0.1:1": (f"http://{stand.registry.host}",)})
    with pytest.raises(NotFound, match=r"HTTP 404.*cannot connect"):
        await stand.pull("127.0.0.1:1/app:v1", mirrored)


async def test_a_mirror_may_have_a_path(stand: Stand) -> None:
    stand.registry.tricks["other"] = _under_prefix
    image = small_image()
    stand.registry.put("app", "v1", image)
    options = replace(FAST, mirrors={"nowhere.invalid": (f"http://{stand.registry.host}/some/prefix/",)})
    with pytest.raises(NotFound):
        await stand.pull("nowhere.invalid/app:v1", options)
    assert stand.registry.seen == ["GET /some/prefix/v2/app/manifests/v1?ns=nowhere.invalid"]


async def _under_prefix(_: web.Request, __: Handler) -> web.StreamResponse:
    return error(404, "MANIFEST_UNKNOWN", "but asked")
