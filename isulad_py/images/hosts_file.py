"""PURE: containerd's and docker's `certs.d/HOST/hosts.toml`: where a host's images are asked for, in order, and how."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from yarl import URL

from isulad_py.images.options import Endpoint, TlsFiles
from isulad_py.model.errors import FailedPrecondition

HOSTS_LIMIT: Final = 256 * 1024
MAX_HOSTS: Final = 64
MAX_HEADERS: Final = 64
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,8192}")
_CAPABILITIES: Final = frozenset({"pull", "resolve", "push"})


class _Host(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`push` and `dial_timeout` say nothing here; what is not known is refused, since it may be meant to protect."""

    capabilities: tuple[str, ...] = ("pull", "resolve", "push")
    ca: str | tuple[str, ...] = ()
    client: str | tuple[str | tuple[str, str], ...] = ()
    skip_verify: bool = False
    override_path: bool = False
    header: dict[str, str | tuple[str, ...]] = {}
    dial_timeout: str = ""


def folders_for(host: str) -> tuple[str, ...]:
    """Names of folders where containerd looks for a host's file: the first that is there counts. A colon is not
    allowed everywhere; `_default` is for hosts that have none of their own."""
    name, colon, port = host.rpartition(":")
    return (*((f"{name}_{port}_",) if colon and port.isdigit() else ()), host, "_default")


def parse_hosts(body: bytes, *, folder: str, host: str, upstream: str) -> tuple[Endpoint, ...]:
    """The endpoints for images of `host`, the server last; `upstream` where the file names none. Paths in the file are
    relative to `folder`. Raises FailedPrecondition naming the file and the entry."""
    path = f"{folder}/hosts.toml"
    try:
        document: dict[str, Any] = tomllib.loads(body.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FailedPrecondition(f"{path}: {error}") from error
    server, hosts = document.pop("server", f"https://{upstream}"), document.pop("host", {})
    if not isinstance(hosts, dict) or len(hosts) > MAX_HOSTS:
        raise FailedPrecondition(f"{path}: host: not a table of at most {MAX_HOSTS} hosts")
    found = [_endpoint(url, fields, path, folder, mirror=True) for url, fields in hosts.items()]
    found.append(_endpoint(server, document, path, folder, mirror=False))
    usable = tuple(dict.fromkeys(endpoint for endpoint in found if endpoint.pulls))
    if not any(endpoint.resolves for endpoint in usable):
        raise FailedPrecondition(f"{path}: nobody resolves tags of {host}")
    return usable


def _endpoint(url: object, fields: object, path: str, folder: str, *, mirror: bool) -> Endpoint:
    where = f"{path}: {'host' if mirror else 'server'} {str(url)[:200]!r}"
    if not isinstance(url, str):
        raise FailedPrecondition(f"{where}: not an address")
    try:
        entry = msgspec.convert(fields, _Host)
        parts = urlsplit(url if "://" in url else f"https://{url}")
        URL(parts.geturl()).origin()  # what the client cannot ask is told here
        known = set(entry.capabilities) <= _CAPABILITIES
    except (msgspec.ValidationError, ValueError) as error:
        raise FailedPrecondition(f"{where}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or "@" in parts.netloc:
        raise FailedPrecondition(f"{where}: not an address of http or https")
    if not known:
        raise FailedPrecondition(f"{where}: capabilities: pull, resolve and push are known")
    prefix = parts.path.rstrip("/")
    plain = parts.scheme == "http"
    return Endpoint(
        host=parts.netloc,
        base=f"{parts.scheme}://{parts.netloc}{prefix if entry.override_path else prefix.removesuffix('/v2')}",
        api="" if entry.override_path else "/v2",
        headers=_headers(entry, where),
        verify=not (plain or entry.skip_verify),
        mirror=mirror,
        pulls="pull" in entry.capabilities,
        resolves="resolve" in entry.capabilities,
        tls=_files(entry, folder),
    )


def _headers(entry: _Host, where: str) -> tuple[tuple[str, str], ...]:
    """Each once; several values are a list (RFC 9110, 5.3)."""
    if len(entry.header) > MAX_HEADERS:
        raise FailedPrecondition(f"{where}: header: more than {MAX_HEADERS}")
    found = []
    for name, given in entry.header.items():
        value = given if isinstance(given, str) else ", ".join(given)
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise FailedPrecondition(f"{where}: header {name[:80]!r}: not a header of HTTP")
        found.append((name, value))
    return tuple(found)


def _files(entry: _Host, folder: str) -> TlsFiles:
    authorities = (entry.ca,) if isinstance(entry.ca, str) else entry.ca
    clients = (entry.client,) if isinstance(entry.client, str) else entry.client
    pairs = [(client, "") if isinstance(client, str) else client for client in clients]
    return TlsFiles(
        authorities=tuple(_absolute(name, folder) for name in authorities if name),
        clients=tuple((_absolute(cert, folder), _absolute(key, folder) if key else "") for cert, key in pairs if cert),
    )


def _absolute(name: str, folder: str) -> str:
    return name if name.startswith("/") else f"{folder}/{name}"
