from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from isulad_py.images.hosts_file import folders_for, parse_hosts
from isulad_py.images.options import Endpoint, TlsFiles
from isulad_py.model.errors import FailedPrecondition, Unavailable
from tests.fakes.registry import FakeRegistry, Handler
from tests.stand.certificates import Certificates, make_certificates
from tests.unit.images.stand import FAST, Stand, small_image

FILE = b"""
server = "https://registry.example"
ca = "server.pem"

[host."https://near.example:5000/v2"]
capabilities = ["pull"]
ca = ["/etc/a.pem", "b.pem"]
client = [["c.cert", "c.key"], "both.pem"]

[host."http://plain.example/prefix"]
capabilities = ["pull", "resolve"]

[host."https://push.example"]
capabilities = ["push"]
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def parse(body: bytes) -> tuple[Endpoint, ...]:
    return parse_hosts(body, folder="/certs/x", host="x", upstream="up.example")


def test_hosts_in_order_and_the_server_last() -> None:
    near, plain, server = parse(FILE)
    assert (near.base, near.host, near.mirror, near.resolves) == (
        "https://near.example:5000",
        "near.example:5000",
        True,
        False,
    )
    assert near.tls == TlsFiles(
        authorities=("/etc/a.pem", "/certs/x/b.pem"),
        clients=(("/certs/x/c.cert", "/certs/x/c.key"), ("/certs/x/both.pem", "")),
    )
    assert (plain.base, plain.verify) == ("http://plain.example/prefix", False)
    assert (server.base, server.verify, server.mirror) == ("https://registry.example", True, False)
    assert server.tls.authorities == ("/certs/x/server.pem",)
    assert [endpoint.base for endpoint in parse(b"")] == ["https://up.example"]
    assert not parse(b"skip_verify = true")[0].verify


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"server = ", "/certs/x/hosts.toml: "),
        (b"\xff", "hosts.toml"),
        (b"server = 7", "server '7'"),
        (b'server = "ftp://x"', "not an address"),
        (b'server = "https://x:99999"', "99999"),
        (b'server = "https://user@x"', "not an address"),
        (b"host = 1", "host: not a table"),
        (b'[host."https://x"]\ncapabilities = ["fly"]', "host 'https://x': capabilities"),
        (b'[host."https://x"]\nskip_verify = "yes"', "host 'https://x': .*skip_verify"),
        (b'[host."https://x".header]\na = "b\\r\\nX: y"', "host 'https://x': header 'a': not a header"),
        (b'[host."https://x".header]\n"a b" = "c"', "header 'a b': not a header"),
        (b'[host."https://x".header]\na = ["b", 1]', "host 'https://x': .*header"),
        (b'[host."https://x"]\nheader = "a: b"', "host 'https://x': .*header"),
        (("[header]\n" + "\n".join(f'h{n} = "x"' for n in range(65))).encode(), "header: more than 64"),
        (b'[host."https://x"]\noverride_path = "yes"', "host 'https://x': .*override_path"),
        (b'[host."https://x"]\nca = 7', "host 'https://x': .*ca"),
        (b'[host."https://x"]\nclient = [["a", "b", "c"]]', "host 'https://x': .*client"),
        (b'[host."https://x:port"]', "host 'https://x:port': "),
        (b'[host."https://x"]\nunheard_of = 1', "host 'https://x': .*unheard_of"),
        (b'capabilities = ["pull"]', "nobody resolves"),
    ],
)
def test_what_is_wrong_is_named(body: bytes, words: str) -> None:
    with pytest.raises(FailedPrecondition, match=words):
        parse(body)


async def test_a_host_that_does_not_resolve_is_asked_by_digest_only(stand: Stand, tmp_path: Path) -> None:
    image = small_image()
    options = replace(FAST, certs_dir=str(tmp_path))
    (tmp_path / "app.example").mkdir()
    async with FakeRegistry().serve() as server:
        for registry in (server, stand.registry):
            registry.put("app", "v1", image)
        text = f'server = "http://{server.host}"\n[host."http://{stand.registry.host}"]\ncapabilities = ["pull"]'
        (tmp_path / "app.example/hosts.toml").write_text(text)
        await stand.pull("app.example/app:v1", options)
        assert (stand.registry.count("/manifests/v1"), server.count("/manifests/v1")) == (0, 1)
        await stand.pull(f"app.example/app@{image.digest}", options)
        assert stand.registry.count(f"/manifests/{image.digest}") == 1


async def test_headers_go_to_the_host_that_they_are_for(stand: Stand, tmp_path: Path) -> None:
    image = small_image()
    stand.registry.put("app", "v1", image)
    (tmp_path / "app.example").mkdir()
    text = f'server = "http://{stand.registry.host}"\n[header]\nX-Team = ["a", "b"]\nAuthorization = "Bearer own"\n'
    (tmp_path / "app.example/hosts.toml").write_text(text)
    seen: list[str] = []
    async with FakeRegistry().serve() as store:
        store.put("app", "v1", image)

        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            seen.append(request.headers.get("X-Team", "none"))
            return await handler(request)

        async def elsewhere(request: web.Request, _: Handler) -> web.StreamResponse:
            return web.Response(status=307, headers={"Location": f"http://{store.host}{request.path_qs}"})

        stand.registry.tricks |= {"manifest": note, "blob": elsewhere}
        store.tricks["blob"] = note
        await stand.pull("app.example/app:v1", replace(FAST, certs_dir=str(tmp_path)))
        assert seen == ["a, b", "none", "none"]
        assert set(stand.registry.authorizations) == {"Bearer own"}
        assert set(store.authorizations) == {""}


async def test_a_path_may_be_all_there_is(stand: Stand, tmp_path: Path) -> None:
    """As Harbor's proxies have it: the path has its own place for /v2."""
    stand.registry.put("project/app", "v1", small_image())
    (tmp_path / "app.example").mkdir()
    host = stand.registry.host
    for path, override in (("v2/project", "true"), ("v2", "false")):
        text = f'[host."http://{host}/{path}"]\noverride_path = {override}\n'
        (tmp_path / "app.example/hosts.toml").write_text(text)
        name = "app" if override == "true" else "project/app"
        await stand.pull(f"app.example/{name}:v1", replace(FAST, certs_dir=str(tmp_path)))
    assert stand.registry.count("GET /v2/project/app/manifests/v1") == 2


async def test_folders_of_hosts(stand: Stand, tmp_path: Path) -> None:
    assert folders_for("a.example") == ("a.example", "_default")
    assert folders_for("a.example:5000") == ("a.example_5000_", "a.example:5000", "_default")
    stand.registry.put("app", "v1", small_image())
    options = replace(FAST, certs_dir=str(tmp_path), connect_seconds=1)
    (tmp_path / "_default").mkdir()
    (tmp_path / "_default/hosts.toml").write_text(f'[host."http://{stand.registry.host}"]\n')
    for name in ("one.invalid/app:v1", "two.invalid:5000/app:v1"):
        await stand.pull(name, options)
    (tmp_path / "two.invalid_5000_").mkdir()
    with pytest.raises(Unavailable, match=r"registry two\.invalid:5000"):
        await stand.pull("two.invalid:5000/app:v1", options)
    (tmp_path / "two.invalid_5000_/hosts.toml").mkdir()
    with pytest.raises(FailedPrecondition, match=r"two\.invalid_5000_/hosts\.toml"):
        await stand.pull("two.invalid:5000/app:v1", options)


@pytest.mark.parametrize(
    "lines",
    [
        ['ca = "{authority}"', 'client = [["{client}", "{client_key}"]]'],
        ['ca = ["{authority}"]', 'client = "both.pem"'],
        ["skip_verify = true", 'client = ["both.pem"]'],
    ],
)
async def test_certificates_that_the_file_names(
    stand: Stand, tmp_path: Path, certificates: Certificates, lines: list[str]
) -> None:
    """Over real TLS, with a registry that wants a certificate of ours."""
    folder = tmp_path / "certs" / "app.example"
    folder.mkdir(parents=True)
    (folder / "both.pem").write_bytes(certificates.client.read_bytes() + certificates.client_key.read_bytes())
    options = replace(FAST, certs_dir=str(tmp_path / "certs"))
    async with FakeRegistry().serve(certificates.server_context(ask_client=True)) as secure:
        secure.put("app", "v1", small_image())
        given = [line.format(**vars(certificates)) for line in lines]
        for left_out in range(2):
            text = f'[host."https://{secure.host}"]\n{given[1 - left_out]}\n'
            (folder / "hosts.toml").write_text(f'server = "https://127.0.0.1:1"\n{text}')
            with pytest.raises(Unavailable, match=f"registry {secure.host}"):
                await stand.pull("app.example/app:v1", options)
        (folder / "hosts.toml").write_text("\n".join([f'[host."https://{secure.host}"]', *given]))
        await stand.pull("app.example/app:v1", options)
        (folder / "hosts.toml").write_text(f'[host."https://{secure.host}"]\nca = "absent.pem"\n')
        with pytest.raises(FailedPrecondition, match=f"registry {secure.host}: .*certificates for {secure.host}"):
            await stand.pull("app.example/app:v1", options)


async def test_the_file_is_read_at_each_pull(stand: Stand, tmp_path: Path) -> None:
    stand.registry.put("app", "v1", small_image())
    host = stand.registry.host
    folder = tmp_path / "certs" / "elsewhere.example"
    folder.mkdir(parents=True)
    options = replace(FAST, certs_dir=str(tmp_path / "certs"))
    (folder / "hosts.toml").write_text(f'server = "http://{host}"\n')
    record = await stand.pull("elsewhere.example/app:v1", options)
    assert record.repo_tags == ("elsewhere.example/app:v1",)
    (folder / "hosts.toml").write_text("nonsense")
    with pytest.raises(
        FailedPrecondition, match=r"image elsewhere\.example/app:v1: configure: .*elsewhere\.example/hosts\.toml"
    ):
        await stand.pull("elsewhere.example/app:v1", options)
