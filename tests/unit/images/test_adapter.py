"""Whole pulls: documents, credentials, what is asked and what is kept."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.images import manifest as manifests
from isulad_py.model.errors import (
    DataLoss,
    EngineError,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    Unsupported,
)
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullProgress, PullRequest
from tests.fakes.registry import FakeRegistry, Handler, error
from tests.images import Image, digest, make_image, make_index
from tests.unit.images.stand import (
    FAST,
    GIVEN,
    LOGIN,
    Stand,
    answering,
    encoded,
    file_layer,
    refused,
    small_image,
)


async def _refuse(status: int) -> web.StreamResponse:
    return error(status, "DENIED", "no")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"{", b'{"schemaVersion":2}', b"\xff\xfe", b"[" * 100_000]
)
async def test_nonsense_is_no_manifest(stand: Stand, body: bytes) -> None:
    name = stand.registry.put("app", "v1", small_image())
    stand.registry.tricks["manifest"] = answering(body=body, content_type=manifests.OCI_MANIFEST)
    await refused(stand, name, DataLoss, f"registry {stand.registry.host}: .*read manifest: manifest")


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


async def test_a_bad_auth_field_is_the_requests_fault(stand: Stand) -> None:
    with pytest.raises(EngineError, match=r"auth\.auth"):
        await stand.pull(f"{stand.registry.host}/app:v1", credentials=Credentials(auth="no base64!"))


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


@pytest.mark.parametrize(
    ("address", "served"),
    [("{host}", True), ("https://{host}/v2/", True), ("", True), ("other.example", False), ("https://other/", False)],
)
async def test_credentials_for_another_server_are_not_sent(stand: Stand, address: str, served: bool) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())
    credentials = replace(GIVEN, server_address=address.format(host=stand.registry.host))
    if served:
        await stand.pull(name, credentials=credentials)
        return
    with pytest.raises(Unauthenticated):
        await stand.pull(name, credentials=credentials)
    assert set(stand.registry.authorizations) == {""}


async def test_the_file_of_credentials(stand: Stand, tmp_path: Path) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())
    path = tmp_path / "config.json"
    options = replace(FAST, auth_file=str(path))
    with pytest.raises(Unauthenticated):
        await stand.pull(name, options)
    path.write_text(json.dumps({"auths": {f"https://{stand.registry.host}": {"auth": encoded("user:hunter2")}}}))
    await stand.pull(name, options)
    path.write_text("{")
    with pytest.raises(
        FailedPrecondition,
        match=rf"image {name}: configure: registry-auth-file: {path}: the file of registry credentials",
    ):
        await stand.pull(name, options)
    path.unlink()
    path.mkdir()
    with pytest.raises(FailedPrecondition, match=f"registry-auth-file: {path}: "):
        await stand.pull(name, options)


async def test_a_mirror_learns_no_credentials_unless_they_are_its_own(stand: Stand) -> None:
    stand.registry.login = LOGIN
    stand.registry.put("app", "v1", small_image())
    async with FakeRegistry().serve() as mirror:
        options = replace(FAST, mirrors={stand.registry.host: (f"http://{mirror.host}",)})
        await stand.pull(f"{stand.registry.host}/app:v1", options, credentials=GIVEN)
        assert set(mirror.authorizations) == {""}
        mirror.login = LOGIN
        mirror.put("other", "v1", small_image("o"))
        own = replace(GIVEN, server_address=mirror.host)
        await stand.pull(f"{stand.registry.host}/other:v1", options, credentials=own)


async def test_a_broken_file_does_not_stop_who_brings_a_login(stand: Stand, tmp_path: Path) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())
    path = tmp_path / "config.json"
    path.write_text("{")
    await stand.pull(name, replace(FAST, auth_file=str(path)), credentials=GIVEN)


async def test_a_mirror_gets_its_own_login_from_the_file(stand: Stand, tmp_path: Path) -> None:
    """Also where the request brings one for the registry."""
    async with FakeRegistry().serve() as mirror:
        mirror.login = ("mirror", "own")
        mirror.put("app", "v1", small_image())
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"auths": {mirror.host: {"auth": encoded("mirror:own")}}}))
        options = replace(FAST, mirrors={stand.registry.host: (f"http://{mirror.host}",)}, auth_file=str(path))
        await stand.pull(f"{stand.registry.host}/app:v1", options, credentials=GIVEN)
    assert stand.registry.seen == []


async def test_an_unchanged_tag_costs_one_request(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", make_index([small_image()]))
    source = stand.source()
    first = await source.pull(PullRequest(reference=parse(name)))
    stand.registry.seen.clear()
    again = await source.pull(PullRequest(reference=parse(name), known=(first,)))
    assert again == first
    assert stand.registry.seen == ["HEAD /v2/app/manifests/v1"]
    stand.registry.seen.clear()
    digest = first.repo_digests[0].partition("@")[2]
    await source.pull(PullRequest(reference=parse(name).at(digest), known=(first,)))  # type: ignore[arg-type]
    assert stand.registry.seen == [f"GET /v2/app/manifests/{digest}"]


async def test_a_moved_tag_is_noticed(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image("old"))
    first = await stand.pull(name)
    stand.registry.put("app", "v1", small_image("new"))
    second = await stand.pull(name, known=(first,))
    assert second.id != first.id
    assert second.repo_tags == first.repo_tags


async def test_a_registry_without_head(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    first = await stand.pull(name)
    for status in (401, 403, 405, 500):
        stand.registry.tricks["head"] = lambda *_, status=status: _refuse(status)
        assert (await stand.pull(name, known=(first,))).id == first.id
    assert stand.registry.count("HEAD") == 4
    assert stand.registry.count("GET /v2/app/manifests") == 5


async def test_an_image_whose_layers_are_gone_is_pulled_again(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    first = await stand.pull(name)
    await stand.store.remove([layer.chain_id for layer in first.layers])
    again = await stand.pull(name, known=(first,))
    assert again.id == first.id
    assert await stand.store.present() == {layer.chain_id for layer in first.layers}


async def test_layers_that_two_pulls_want_are_brought_once(stand: Stand) -> None:
    base = file_layer("base")
    names = [
        stand.registry.put(word, "v1", make_image([base, file_layer(word)], config={"Cmd": [word]}))
        for word in ("one", "two", "three")
    ]
    gate, waiting = asyncio.Event(), 0

    async def held(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal waiting
        if request.match_info["name"] == base.digest:
            await gate.wait()
        elif "one" not in request.path:
            waiting += 1
            if waiting == 4:  # configuration and own layer of the two others: they want the base by now
                gate.set()
        return await handler(request)

    stand.registry.tricks["blob"] = held
    source = stand.source(replace(FAST, stall_seconds=30))
    first = asyncio.ensure_future(source.pull(PullRequest(reference=parse(names[0]))))
    others = [asyncio.ensure_future(source.pull(PullRequest(reference=parse(name)))) for name in names[1:]]
    await asyncio.gather(first, *others)
    assert stand.registry.count(f"blobs/{base.digest}") == 1


async def test_who_waits_for_anothers_layer_does_not_fail_with_him(stand: Stand) -> None:
    """The first is cancelled, the second goes on with what the first has begun."""
    base = file_layer("base")
    names = [stand.registry.put(w, "v1", make_image([base], config={"Cmd": [w]})) for w in ("one", "two")]
    gate, asked = asyncio.Event(), asyncio.Event()

    async def held(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == base.digest:
            asked.set()
            await gate.wait()
        return await handler(request)

    stand.registry.tricks["blob"] = held
    source = stand.source(replace(FAST, stall_seconds=30))
    first = asyncio.ensure_future(source.pull(PullRequest(reference=parse(names[0]))))
    await asked.wait()
    second = asyncio.ensure_future(source.pull(PullRequest(reference=parse(names[1]))))
    while stand.registry.count("two/blobs") < 1:
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    first.cancel()
    gate.set()
    record = await second
    assert await stand.store.present() == {record.layers[0].chain_id}


async def test_a_layer_that_appears_twice_in_an_image(stand: Stand) -> None:
    layer = file_layer("same")
    name = stand.registry.put("app", "v1", make_image([layer, layer, layer]))
    record = await stand.pull(name)
    assert len({layer.chain_id for layer in record.layers}) == 3


async def test_platforms_and_formats(stand: Stand) -> None:
    form: Any
    for form in ("oci", "docker"):
        images = [
            make_image([file_layer(arch + variant)], architecture=arch, variant=variant, form=form)
            for arch, variant in (("arm", "v6"), ("arm", "v7"), ("arm64", "v8"), ("amd64", ""))
        ]
        name = stand.registry.put("app", form, make_index(images, form))
        for machine, number in (("x86_64", 3), ("aarch64", 2), ("armv7l", 1), ("armv6l", 0)):
            source = stand.source(machine=machine)
            record = await source.pull(PullRequest(reference=parse(name)))
            assert record.id == images[number].image_id
            assert record.repo_digests[0].endswith(make_index(images, form).digest)
            assert record.manifest_digest == images[number].digest
        with pytest.raises(NotFound, match="s390x"):
            await stand.source(machine="s390x").pull(PullRequest(reference=parse(name)))


async def test_the_configuration_arrives(stand: Stand) -> None:
    config: dict[str, Any] = {
        "User": "1000:1000",
        "Env": ["A=b"],
        "Entrypoint": ["/entry"],
        "Cmd": None,
        "WorkingDir": "/work",
        "Volumes": {"/data": {}},
        "Labels": {"k": "v"},
        "StopSignal": "SIGQUIT",
        "ExposedPorts": {"80/tcp": {}},
        "OnBuild": None,
        "Healthcheck": {"Test": ["NONE"]},
    }
    record = await stand.pull(stand.registry.put("app", "v1", small_image(**config)))
    assert record.config.user == "1000:1000"
    assert record.config.env == ("A=b",)
    assert (record.config.entrypoint, record.config.cmd) == (("/entry",), ())
    assert (record.config.working_dir, record.config.stop_signal) == ("/work", "SIGQUIT")
    assert (record.config.volumes, record.config.exposed_ports) == (("/data",), ("80/tcp",))
    assert record.config.labels == {"k": "v"}
    assert record.created_at == 1_700_000_000_000_000_000
    assert record.architecture == "amd64"


async def test_progress_is_told(stand: Stand) -> None:
    told: list[PullProgress] = []
    name = stand.registry.put("app", "v1", small_image())
    await stand.source().pull(PullRequest(reference=parse(name)), told.append)
    assert [entry.step for entry in told] == ["resolving", "downloading", "downloading", "unpacking", "done"]
    assert (told[1].done_bytes, told[2].done_bytes) == (0, told[1].total_bytes)
    assert told[1].total_bytes > 0
    assert told[1].digest == told[2].digest == file_layer("file").digest


async def test_options_can_be_changed(stand: Stand) -> None:
    stand.registry.put("library/app", "v1", small_image())
    source = stand.source(replace(FAST, mirrors={"docker.io": ("http://127.0.0.1:1",), "x": ()}, tries=1))
    source.reload(replace(FAST, mirrors={"docker.io": (f"http://{stand.registry.host}",)}))
    await source.pull(PullRequest(reference=parse("app:v1")))


async def test_closing_ends_what_is_under_way(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", small_image())
    asked, released = asyncio.Event(), asyncio.Event()

    async def held(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info["name"] == file_layer("file").digest:
            asked.set()
            await released.wait()
        return await handler(request)

    stand.registry.tricks["blob"] = held
    source = stand.source(replace(FAST, stall_seconds=30))
    pull = asyncio.ensure_future(source.pull(PullRequest(reference=parse(name))))
    await asked.wait()
    await source.close()
    released.set()
    with pytest.raises((Unavailable, DataLoss)):
        await pull
