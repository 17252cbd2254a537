"""How registries are reached. PURE: which endpoints serve a host, in which order, through which proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from isulad_py.images.unpack import UnpackLimits

_UPSTREAM: Final = {"docker.io": "registry-1.docker.io"}
"""Where a name's host does not answer itself."""


class RegistryOptions(Struct, frozen=True, kw_only=True):
    """Times are seconds."""

    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the host in an image's name: tried in order, then the host itself. `host[:port][/prefix]`, with `http://` in
    front for plain HTTP. iSulad's `registry-mirrors` are those of docker.io."""
    insecure_hosts: tuple[str, ...] = ()
    """Hosts, host:port, or networks (10.0.0.0/8), whose certificate is not verified and who may speak plain HTTP."""
    skip_verify: bool = False
    """No certificate is verified (iSulad's `insecure-skip-verify-enforce`)."""
    certs_dir: str = "/etc/isulad/certs.d"
    """`HOST[:PORT]/*.crt` are its authorities, `*.cert` with `*.key` our certificates."""
    ca_files: Mapping[str, str] = field(default_factory=dict)
    """A host's authorities in one file, beside those of `certs_dir`."""
    auth_file: str = ""
    """Docker's config.json (`auths`), asked where a request has no credentials; read anew for each pull."""
    policy_file: str = ""
    """containers-policy.json(5), read anew for each pull; without one every image is accepted."""
    proxies: Mapping[str, str] = field(default_factory=dict)
    """`http`, `https` and `no`, as urllib.request.getproxies_environment gives them."""
    concurrency: int = 5
    """Layers of one pull at once."""
    connections_per_host: int = 16
    connect_seconds: float = 30.0
    stall_seconds: float = 30.0
    """A connection that brings less than `stall_bytes` in that time is given up and begun again."""
    stall_bytes: int = 30 * 1024
    tries: int = 5
    """Of one request, and of a blob without progress."""
    backoff_seconds: float = 0.5
    """Before the second try; doubled each time, unless the registry says when (Retry-After)."""
    backoff_limit_seconds: float = 60.0
    """A registry that wants more patience is reported as unavailable instead."""
    redirects: int = 5
    limits: UnpackLimits = UnpackLimits()


class TlsFiles(Struct, frozen=True, kw_only=True):
    """Of one endpoint, beside those of `certs_dir`."""

    authorities: tuple[str, ...] = ()
    clients: tuple[tuple[str, str], ...] = ()
    """Certificate and key; an empty key is in the certificate's file."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """One place to ask."""

    host: str
    """host[:port], as in its URL."""
    base: str
    """`scheme://host[:port][/prefix]`."""
    api: str = "/v2"
    """Below the base: where the distribution API begins."""
    headers: tuple[tuple[str, str], ...] = ()
    """For each request to it, and to no other host."""
    verify: bool = True
    """The certificate has to be right."""
    mirror: bool = False
    instead_of_tls: bool = False
    """Plain HTTP, asked only where the endpoint before it turned out not to speak TLS."""

    pulls: bool = True
    resolves: bool = True
    """It may be asked what a tag stands for."""
    tls: TlsFiles = TlsFiles()

    @property
    def plain(self) -> bool:
        return self.base.startswith("http://")


def upstream_of(host: str) -> str:
    """The host that is asked for images of `host`."""
    return _UPSTREAM.get(host, host)


def endpoints_for(host: str, options: RegistryOptions) -> tuple[Endpoint, ...]:
    """Where images of `host` are looked for, in order."""
    found: list[Endpoint] = []
    for mirror in options.mirrors.get(host, ()):
        found += _endpoints(mirror, options, mirror=True)
    found += _endpoints(upstream_of(host), options, mirror=False)
    return tuple(dict.fromkeys(found))


def _endpoints(text: str, options: RegistryOptions, *, mirror: bool) -> list[Endpoint]:
    scheme, separator, rest = text.rstrip("/").rpartition("://")
    host, _, prefix = rest.partition("/")
    path = f"/{prefix}" if prefix else ""
    plain = Endpoint(host=host, base=f"http://{host}{path}", verify=False, mirror=mirror)
    if separator and scheme == "http":
        return [plain]
    insecure = options.skip_verify or is_insecure(host, options)
    secure = Endpoint(host=host, base=f"https://{host}{path}", verify=not insecure, mirror=mirror)
    if separator or not is_insecure(host, options):
        return [secure]
    return [
        secure,
        Endpoint(host=host, base=plain.base, verify=False, mirror=mirror, instead_of_tls=True),
    ]


def is_insecure(host: str, options: RegistryOptions) -> bool:
    """Listed, or on this very machine (as docker has it)."""
    name = hostname(host)
    if host in options.insecure_hosts or name in options.insecure_hosts or name == "localhost":
        return True
    address = _address(name)
    if address is None:
        return False
    return address.is_loopback or any(address in network for network in _networks(options.insecure_hosts))


def _networks(texts: tuple[str, ...]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    for text in texts:
        if "/" in text:
            try:
                found.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                continue  # the configuration's validation has told of it
    return found


def hostname(host: str) -> str:
    """Without the port and the brackets of IPv6."""
    try:
        return urlsplit(f"//{host}").hostname or host
    except ValueError:
        return host


def proxy_for(url: str, options: RegistryOptions) -> str | None:
    """The proxy of a URL. Our own machine is never reached through one."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    proxy = options.proxies.get(parts.scheme)
    if not proxy or name == "localhost" or _bypasses(name, parts.port, options.proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _bypasses(name: str, port: int | None, no_proxy: str) -> bool:
    """As Go's tools read NO_PROXY: hosts with everything below them, addresses, networks, `*`."""
    address = _address(name)
    if address is not None and address.is_loopback:
        return True
    for text in (part.strip().lower() for part in no_proxy.split(",")):
        entry = text.removesuffix(f":{port}") if port is not None else text
        if entry == "*" or (entry and entry == name):
            return True
        if address is not None and any(address in network for network in _networks((entry,))):
            return True
        domain = entry.removeprefix("*").lstrip(".")
        if domain and name.endswith(f".{domain}"):
            return True
    return False


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
