"""Certificates of registries, and our own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from isulad_py.images.options import RegistryOptions
from isulad_py.model.errors import (
    FailedPrecondition,
    Unavailable,
)
from tests.fakes.registry import FakeRegistry
from tests.stand.certificates import Certificates, make_certificates
from tests.unit.images.stand import (
    FAST,
    Stand,
    small_image,
)


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


@contextlib.asynccontextmanager
async def tunnel(target: str) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that leads every CONNECT to `target`; gives its address, and what it was asked."""
    asked: list[str] = []
    host, _, port = target.partition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(copied(reader, far_writer), copied(far_reader, writer))

    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


async def test_through_a_proxy_the_registry_still_shows_its_certificate(
    stand: Stand, certificates: Certificates
) -> None:
    async with (
        FakeRegistry().serve(certificates.server_context()) as secure,
        tunnel(secure.host) as (proxy, asked),
    ):
        secure.put("app", "v1", small_image())
        proxies = {"https": f"http://{proxy}", "no": ".internal"}
        with pytest.raises(Unavailable, match=r"registry\.invalid: .*the certificate is not trusted"):
            await stand.pull("registry.invalid/app:v1", strict(proxies=proxies))
        await stand.pull("registry.invalid/app:v1", strict(proxies=proxies, skip_verify=True))
        assert set(asked) == {"CONNECT registry.invalid:443 HTTP/1.1"}
        with pytest.raises(Unavailable, match=r"cannot connect to 127\.0\.0\.1:1: connection refused"):
            await stand.pull("other.invalid/app:v1", strict(proxies={"https": "http://127.0.0.1:1"}))
