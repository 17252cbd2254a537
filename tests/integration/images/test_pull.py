"""Ways to an image: credentials, tokens, mirrors, redirects, TLS, proxies; and how little is asked twice."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.images.options import RegistryOptions
from isulad_py.model.errors import (
    DataLoss,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from isulad_py.model.image import Credentials
from isulad_py.model.reference import parse
from isulad_py.ports.images import PullProgress, PullRequest
from tests.fakes.registry import FakeRegistry, Handler, error
from tests.images import make_image, make_index
from tests.integration.images.conftest import FAST, Stand, file_layer, small_image
from tests.stand.certificates import Certificates, make_certificates

LOGIN = ("user", "hunter2")
GIVEN = Credentials(username="user", password="hunter2")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Credentials and tokens


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize(
    "credentials",
    [
        GIVEN,
        Credentials(auth=encoded("user:hunter2")),
        Credentials(auth=encoded("user:hunter2\0\0")),
        Credentials(username="user", password="hunter2", auth=encoded("other:x")),
    ],
)
async def test_forms_of_credentials(stand: Stand, credentials: Credentials, tokens: bool) -> None:
    stand.registry.login, stand.registry.tokens = LOGIN, tokens
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=credentials)


async def test_an_identity_token_is_exchanged(stand: Stand) -> None:
    stand.registry.login, stand.registry.tokens = ("", "refresh-me"), True
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=Credentials(identity_token="refresh-me"))
    assert stand.registry.count("POST /token") == 1
    with pytest.raises(Unauthenticated, match="credentials are not accepted"):
        await stand.pull(name, credentials=Credentials(identity_token="old"))


async def test_a_registry_token_is_sent_as_it_is(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("app", "v1", small_image())
    await stand.pull(name, credentials=Credentials(registry_token="good"))
    assert stand.registry.count("/token") == 0
    with pytest.raises(Unauthenticated, match="registry token is not accepted"):
        await stand.pull(name, credentials=Credentials(registry_token="bad"))


async def test_an_anonymous_token_serves_the_whole_pull_and_the_next(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("team/app", "v1", small_image("a", "b"))
    source = stand.source()
    for tag in ("v1", "v1"):
        await source.pull(PullRequest(reference=parse(name.replace("v1", tag))))
    (asked,) = [line for line in stand.registry.seen if "/token" in line]
    assert "scope=repository:team/app:pull" in asked
    assert "service=fake" in asked


async def test_a_token_that_was_withdrawn_is_fetched_anew(stand: Stand) -> None:
    stand.registry.tokens = True
    name = stand.registry.put("app", "v1", small_image())
    source = stand.source()
    await source.pull(PullRequest(reference=parse(name)))
    stand.registry.token_answer = {"access_token": "newer"}
    await source.pull(PullRequest(reference=parse(name)))
    assert stand.registry.count("/token") == 2


async def test_the_login_of_one_is_not_the_login_of_another(stand: Stand) -> None:
    stand.registry.login = LOGIN
    name = stand.registry.put("app", "v1", small_image())
    source = stand.source()
    await source.pull(PullRequest(reference=parse(name), credentials=GIVEN))
    for credentials in (None, Credentials(username="user", password="guess")):
        with pytest.raises(Unauthenticated):
            await source.pull(PullRequest(reference=parse(name), credentials=credentials))


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
    with pytest.raises(InvalidInput, match="file of registry credentials"):
        await stand.pull(name, options)


# Mirrors


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


async def test_a_mirror_may_have_a_path(stand: Stand) -> None:
    stand.registry.tricks["other"] = _under_prefix
    image = small_image()
    stand.registry.put("app", "v1", image)
    options = replace(FAST, mirrors={"nowhere.invalid": (f"http://{stand.registry.host}/some/prefix/",)})
    with pytest.raises(NotFound):
        await stand.pull("nowhere.invalid/app:v1", options)
    assert stand.registry.seen == ["GET /some/prefix/v2/app/manifests/v1"]


async def _under_prefix(_: web.Request, __: Handler) -> web.StreamResponse:
    return error(404, "MANIFEST_UNKNOWN", "but asked")


# Redirects


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


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def certs_dir(tmp_path: Path, host: str, certificates: Certificates, *, client: bool = False) -> str:
    folder = tmp_path / "certs.d" / host
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_bytes(certificates.authority.read_bytes())
    if client:
        (folder / "client.cert").write_bytes(certificates.client.read_bytes())
        (folder / "client.key").write_bytes(certificates.client_key.read_bytes())
    return str(tmp_path / "certs.d")


def strict(**fields: Any) -> RegistryOptions:
    """Loopback is insecure by itself: a mirror with https in front has to be verified where nothing says otherwise."""
    return replace(FAST, **fields)


async def test_an_authority_of_the_hosts_own(tmp_path: Path, stand: Stand, certificates: Certificates) -> None:
    async with FakeRegistry().serve(certificates.server_context()) as secure:
        secure.put("app", "v1", small_image())
        name = f"{secure.host.replace('127.0.0.1', 'localhost')}/app:v1"
        options = strict(mirrors={"example.org": (f"https://{secure.host}",)})
        await stand.pull(name, options)  # this machine: whatever certificate it has
        assert secure.scheme == "https"
        folder = certs_dir(tmp_path, secure.host, certificates)
        await stand.pull("example.org/app:v1", strict(mirrors=options.mirrors, certs_dir=folder))
        await stand.pull(
            "example.org/app:v1", strict(mirrors=options.mirrors, ca_files={secure.host: str(certificates.authority)})
        )


async def test_a_client_certificate(tmp_path: Path, stand: Stand, certificates: Certificates) -> None:
    async with FakeRegistry().serve(certificates.server_context(ask_client=True)) as secure:
        secure.put("app", "v1", small_image())
        name = f"{secure.host}/app:v1"
        with pytest.raises(Unavailable):
            await stand.pull(name, strict(certs_dir=""))
        await stand.pull(name, strict(certs_dir=certs_dir(tmp_path, secure.host, certificates, client=True)))


@pytest.mark.parametrize(("missing", "words"), [("client.key", "no key beside"), ("client.cert", "no certificate")])
async def test_half_a_client_certificate_is_named(
    tmp_path: Path, stand: Stand, certificates: Certificates, missing: str, words: str
) -> None:
    folder = certs_dir(tmp_path, stand.registry.host, certificates, client=True)
    (Path(folder) / stand.registry.host / missing).unlink()
    with pytest.raises(FailedPrecondition, match=words):
        await stand.pull(f"{stand.registry.host}/app:v1", strict(certs_dir=folder))


async def test_broken_certificate_files_are_named(tmp_path: Path, stand: Stand, certificates: Certificates) -> None:
    folder = certs_dir(tmp_path, stand.registry.host, certificates)
    (Path(folder) / stand.registry.host / "ca.crt").write_text("no certificate")
    with pytest.raises(FailedPrecondition, match=f"certificates for {stand.registry.host}"):
        await stand.pull(f"{stand.registry.host}/app:v1", strict(certs_dir=folder))


# Proxies


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


# How little is asked


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
    stand.registry.tricks["head"] = lambda *_: _refuse(405)
    assert (await stand.pull(name, known=(first,))).id == first.id
    stand.registry.tricks["head"] = lambda *_: _refuse(403)
    with pytest.raises(PermissionDenied):
        await stand.pull(name, known=(first,))


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
    assert [entry.step for entry in told] == ["resolving", "downloading", "unpacking", "done"]
    assert told[1].done_bytes == told[1].total_bytes > 0
    assert told[1].digest == file_layer("file").digest


async def test_options_can_be_changed(stand: Stand) -> None:
    stand.registry.put("library/app", "v1", small_image())
    source = stand.source(replace(FAST, mirrors={"docker.io": ("http://127.0.0.1:1",), "x": ()}, tries=1))
    source.reload(replace(FAST, mirrors={"docker.io": (f"http://{stand.registry.host}",)}))
    await source.pull(PullRequest(reference=parse("app:v1")))


async def test_a_layer_failing_for_the_disk_is_not_asked_elsewhere(stand: Stand) -> None:
    image = small_image()
    name = stand.registry.put("app", "v1", image)
    options = replace(FAST, limits=replace(FAST.limits, entries=0))
    with pytest.raises(ResourceExhausted, match="more than 0 entries"):
        await stand.pull(name, options)


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
