"""Registries that lie, stumble and attack: each gets a typed error that names registry, image and step, and leaves
nothing behind (the stand looks)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.images import manifest as manifests
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unsupported,
)
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullRequest
from tests.fakes.registry import Handler, cut_after, error, range_start
from tests.images import Image, digest, layer_of, make_image, make_index
from tests.integration.images.conftest import FAST, Stand, file_layer, small_image


async def refused(stand: Stand, name: str, kind: type[EngineError], words: str, **fields: Any) -> EngineError:
    with pytest.raises(EngineError, match=words) as caught:
        await stand.pull(name, **fields)
    assert type(caught.value) is kind, repr(caught.value)
    assert str(parse(name)) in str(caught.value)
    assert await stand.store.present() == frozenset()
    return caught.value


def answering(**fields: Any) -> Callable[[web.Request, Handler], Any]:
    async def answer(_: web.Request, __: Handler) -> web.StreamResponse:
        return web.Response(**fields)

    return answer


# Documents


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


async def test_a_web_page_is_no_manifest(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tricks["manifest"] = answering(text="<html>Welcome</html>", content_type="text/html")
    await refused(stand, name, Unavailable, f"registry {stand.registry.host}: .*resolve: a web page")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"{", b'{"schemaVersion":2}', b"\xff\xfe", b"[" * 100_000]
)
async def test_nonsense_is_no_manifest(stand: Stand, body: bytes) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tricks["manifest"] = answering(body=body, content_type=manifests.OCI_MANIFEST)
    await refused(stand, name, DataLoss, f"registry {stand.registry.host}: .*read manifest: manifest")


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


def documents() -> dict[str, tuple[dict[str, Any], str, type[EngineError], str]]:
    good = json.loads(small_image().document)
    oci, docker = manifests.OCI_MANIFEST, manifests.DOCKER_MANIFEST
    index = {"schemaVersion": 2, "manifests": []}

    def with_layer(**fields: Any) -> dict[str, Any]:
        return {**good, "layers": [{**good["layers"][0], **fields}]}

    def with_config(**fields: Any) -> dict[str, Any]:
        return {**good, "config": {**good["config"], **fields}}

    return {
        "schema 1": ({"schemaVersion": 1, "fsLayers": []}, oci, Unsupported, "schema 1"),
        "schema 1 by type": (
            {"schemaVersion": 1},
            "application/vnd.docker.distribution.manifest.v1+prettyjws",
            Unsupported,
            "schema 1",
        ),
        "both": ({**good, "manifests": []}, oci, DataLoss, "both a manifest and an index"),
        "index as manifest": (index, docker, DataLoss, "but is an index"),
        "manifest as index": (good, manifests.OCI_INDEX, DataLoss, "but is no index"),
        "artifact": (with_config(mediaType="application/vnd.helm.config"), oci, Unsupported, "artifact of .*helm"),
        "artifact by type": (
            {**with_config(mediaType="application/vnd.oci.empty.v1+json"), "artifactType": "text/sbom"},
            oci,
            Unsupported,
            "artifact of text/sbom",
        ),
        "foreign layer": (
            with_layer(mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
            docker,
            Unsupported,
            "foreign",
        ),
        "nondistributable layer": (
            with_layer(mediaType="application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"),
            oci,
            Unsupported,
            "foreign",
        ),
        "unknown layer": (with_layer(mediaType="application/x-rar"), oci, Unsupported, "no kind of layer"),
        "layer without digest": (with_layer(digest=""), oci, DataLoss, "layer: '' is not a digest"),
        "layer with a path": (with_layer(digest="sha256:../../x"), oci, DataLoss, "layer: sha256 digest"),
        "layer of negative size": (with_layer(size=-5), oci, DataLoss, "size -5"),
        "layer of enormous size": (with_layer(size=1 << 60), oci, DataLoss, "size 1152921504606846976"),
        "configuration too large": (with_config(size=1 << 30), oci, DataLoss, "4194304 are the limit"),
        "too many layers": ({**good, "layers": good["layers"] * 200}, oci, Unsupported, "200 layers"),
        "empty index": (index, manifests.OCI_INDEX, NotFound, "nothing for linux on x86_64; there is nothing at all"),
    }


@pytest.mark.parametrize("case", documents())
async def test_documents_that_are_refused(stand: Stand, case: str) -> None:
    document, media_type, kind, words = documents()[case]
    body = json.dumps(document).encode()
    name = stand.registry.put("app", "v1", Image(document=body, media_type=media_type))
    await refused(stand, name, kind, words)
    assert stand.registry.count("/blobs/") == 0


async def test_an_index_for_other_machines_says_what_there_is(stand: Stand) -> None:
    index = make_index([make_image([file_layer("a")], architecture=arch) for arch in ("s390x", "riscv64")])
    name = stand.registry.put("app", "v1", index)
    await refused(stand, name, NotFound, "nothing for linux on x86_64; there is linux/riscv64, linux/s390x")


async def test_an_index_that_contains_itself_over_and_over(stand: Stand) -> None:
    part = small_image()
    for _ in range(5):
        part = make_index([replace_architecture(part)])
    name = stand.registry.put("app", "v1", part)
    await refused(stand, name, DataLoss, "more than 3 indexes within each other")


def replace_architecture(image: Image) -> Image:
    return Image(
        document=image.document,
        media_type=image.media_type,
        blobs=image.blobs,
        images=image.images,
        architecture="amd64",
    )


async def test_a_configuration_that_does_not_fit_its_manifest(stand: Stand) -> None:
    image = small_image("a", "b")
    document = json.loads(image.document)
    document["layers"].pop()
    body = json.dumps(document).encode()
    name = stand.registry.put("app", "v1", Image(document=body, media_type=image.media_type, blobs=image.blobs))
    await refused(stand, name, DataLoss, "read configuration: configuration: 2 layers, where the manifest has 1")


async def test_an_image_for_another_system(stand: Stand) -> None:
    image = small_image()
    (config,) = [blob for name, blob in image.blobs.items() if name == image.image_id]
    windows = config.replace(b'"linux"', b'"windows"')
    body = image.document.replace(image.image_id.encode(), digest(windows).encode())
    body = body.replace(b'"size": %d' % len(config), b'"size": %d' % len(windows))
    blobs = {**image.blobs, digest(windows): windows}
    name = stand.registry.put("app", "v1", Image(document=body, media_type=image.media_type, blobs=blobs))
    await refused(stand, name, Unsupported, "an image for windows")


# Blobs


def layer_blob(image: Image) -> str:
    return str(json.loads(image.document)["layers"][0]["digest"])


async def test_another_blob_than_asked_for(stand: Stand) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)
    blob = layer_blob(image)
    stand.registry.blobs[blob] = stand.registry.blobs[blob][:-1] + b"X"
    await refused(stand, name, DataLoss, f"fetch layer {blob}: blob {blob} came with digest")


async def test_another_configuration_than_asked_for(stand: Stand) -> None:
    image = small_image("a")
    name = stand.registry.put("app", "v1", image)
    stand.registry.blobs[image.image_id] = stand.registry.blobs[image.image_id].replace(b"linux", b"sysv4")
    await refused(stand, name, DataLoss, f"fetch configuration: blob {image.image_id} came with digest")


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


@pytest.mark.parametrize("kind", ["manifest", "blob"])
async def test_a_registry_that_never_answers(stand: Stand, kind: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    released = asyncio.Event()

    async def silent(_: web.Request, __: Handler) -> web.StreamResponse:
        await released.wait()
        return web.Response()

    stand.registry.tricks[kind] = silent
    try:
        await refused(stand, name, Unavailable, "stalled: nothing came for 0.3 s")
    finally:
        released.set()


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
    options = replace(FAST, tries=2)
    await refused(stand, name, Unavailable, "stalled: [0-9]+ bytes in", options=options)


# Refusals, patience, redirects


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
    await refused(stand, "127.0.0.1:1/app:v1", Unavailable, "registry 127.0.0.1:1: .*resolve: cannot connect")


async def test_a_name_that_does_not_exist(stand: Stand) -> None:
    await refused(stand, "registry.invalid/app:v1", Unavailable, "registry registry.invalid: .*resolve: cannot connect")


# Tokens


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ({"status": 500}, Unavailable, "token service .*HTTP 500"),
        ({"status": 403}, PermissionDenied, "token service .*denied"),
        ({"status": 401}, Unauthenticated, "token service .*wants credentials"),
        ({"status": 404}, Unavailable, "token service .*HTTP 404"),
        ({"body": b"<html>"}, DataLoss, "token service: its answer cannot be read"),
        ({"body": b"{}"}, DataLoss, "holds no token"),
        ({"body": b'{"token": "a\\nInjected: yes"}'}, DataLoss, "holds no token"),
        ({"body": b"x" * 300_000}, ResourceExhausted, "300000 bytes"),
    ],
)
async def test_token_services_that_fail(
    stand: Stand, answer: dict[str, Any], kind: type[EngineError], words: str
) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tokens = True
    stand.registry.tricks["token"] = answering(**answer)
    await refused(stand, name, kind, f"resolve: .*{words}")


async def test_a_token_that_is_never_good(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tokens = True
    stand.registry.tricks["token"] = answering(body=b'{"token": "bad"}')
    await refused(stand, name, Unauthenticated, "needs credentials, or does not exist")
    assert stand.registry.count("/token") == 1


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        ("", "no scheme at all"),
        ("Negotiate", "negotiate"),
        ("Bearer", "token service: '' is no web address"),
        ('Bearer realm="file:///etc/passwd"', "no web address"),
        ('Bearer realm="http://[::1"', "no address"),
        ('Basic realm="x"', "wants a name and a password"),
        ("Bearer realm=" + "x" * 7000, "no web address"),
    ],
)
async def test_strange_challenges(stand: Stand, challenge: str, words: str) -> None:
    name = stand.registry.put("app", "v1", small_image())
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    stand.registry.tricks["manifest"] = answering(status=401, headers=headers)
    with pytest.raises((Unauthenticated, Unavailable), match=words):
        await stand.pull(name)


async def test_a_bad_auth_field_is_the_requests_fault(stand: Stand) -> None:
    with pytest.raises(EngineError, match=r"auth\.auth"):
        await stand.pull(f"{stand.registry.host}/app:v1", credentials=Credentials(auth="no base64!"))


# Layers


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


async def test_a_configuration_that_disagrees_with_its_layers(stand: Stand) -> None:
    image = small_image("a")
    (config,) = [blob for name, blob in image.blobs.items() if name == image.image_id]
    false = config.replace(file_layer("a").diff_id.encode(), b"sha256:" + b"1" * 64)
    body = image.document.replace(image.image_id.encode(), digest(false).encode())
    blobs = {**image.blobs, digest(false): false}
    name = stand.registry.put("app", "v1", Image(document=body, media_type=image.media_type, blobs=blobs))
    await refused(stand, name, DataLoss, "configuration and layer disagree")


async def test_what_was_good_of_a_failed_pull_is_not_fetched_again(stand: Stand) -> None:
    image = small_image("good", "bad")
    name = stand.registry.put("app", "v1", image)
    good, bad = (layer["digest"] for layer in json.loads(image.document)["layers"])
    kept = stand.registry.blobs[bad]
    fetched = asyncio.Event()

    async def late(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == bad and not fetched.is_set():
            while stand.store.find(file_layer("good").diff_id) is None:  # type: ignore[arg-type]
                await asyncio.sleep(0.001)
            fetched.set()
            return error(403, "DENIED", "later")
        return await handler(request)

    stand.registry.tricks["blob"] = late
    await refused(stand, name, PermissionDenied, "later")
    stand.registry.blobs[bad] = kept
    await stand.pull(name)
    assert stand.registry.count(f"blobs/{good}") == 1


async def test_a_cancelled_pull_leaves_nothing(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", make_image([file_layer("big", random.Random(3).randbytes(500_000))]))
    begun, released = asyncio.Event(), asyncio.Event()

    async def half(request: web.Request, handler: Handler) -> web.StreamResponse:
        data = stand.registry.blobs[request.match_info["name"]]
        if len(data) < 100_000:
            return await handler(request)
        response = web.StreamResponse(headers={"Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(data[:300_000])
        begun.set()
        await released.wait()
        return response

    stand.registry.tricks["blob"] = half
    source = stand.source(replace(FAST, stall_seconds=60))
    pull = asyncio.ensure_future(source.pull(PullRequest(reference=parse(name))))
    await begun.wait()
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    released.set()
    await source.close()
    assert await stand.store.present() == frozenset()
    assert stand.leftovers() == []
