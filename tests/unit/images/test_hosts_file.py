from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.images.hosts_file import parse_hosts
from isulad_py.images.options import Endpoint, TlsFiles
from isulad_py.model.errors import FailedPrecondition
from tests.fakes.registry import FakeRegistry
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
        (b'[host."https://x".header]\na = "b"', "header"),
        (b'[host."https://x/p"]\noverride_path = true', "override_path"),
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
    with pytest.raises(FailedPrecondition, match=r"elsewhere\.example/hosts\.toml"):
        await stand.pull("elsewhere.example/app:v1", options)
