"""Endpoints, insecure hosts, proxies."""

from __future__ import annotations

import pytest

from isulad_py.images.options import RegistryOptions, endpoints_for, hostname, is_insecure, proxy_for


def seen(host: str, **fields: object) -> list[tuple[str, bool, bool, bool]]:
    options = RegistryOptions(**fields)  # type: ignore[arg-type]
    return [(e.base, e.verify, e.mirror, e.instead_of_tls) for e in endpoints_for(host, options)]


def test_the_host_itself() -> None:
    assert seen("quay.io") == [("https://quay.io", True, False, False)]
    assert seen("docker.io") == [("https://registry-1.docker.io", True, False, False)]


def test_mirrors_come_first_in_order() -> None:
    mirrors = {"docker.io": ("http://one:5000", "two.example/prefix/", "https://three")}
    assert seen("docker.io", mirrors=mirrors) == [
        ("http://one:5000", False, True, False),
        ("https://two.example/prefix", True, True, False),
        ("https://three", True, True, False),
        ("https://registry-1.docker.io", True, False, False),
    ]
    assert len(seen("quay.io", mirrors=mirrors)) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1:5000", "localhost", "[::1]:5000", "reg.example:5000", "10.1.2.3:80", "listed"]
)
def test_insecure_hosts_may_do_without_tls(host: str) -> None:
    insecure = ("reg.example:5000", "10.0.0.0/8", "listed", "not a network/x")
    assert seen(host, insecure_hosts=insecure) == [
        (f"https://{host}", False, False, False),
        (f"http://{host}", False, False, True),
    ]


def test_a_scheme_is_kept() -> None:
    mirrors = {"x": ("https://127.0.0.1:5000",)}
    assert seen("x", mirrors=mirrors)[0] == ("https://127.0.0.1:5000", False, True, False)


def test_no_certificate_is_verified_when_told_so() -> None:
    assert seen("quay.io", skip_verify=True) == [("https://quay.io", False, False, False)]


@pytest.mark.parametrize("host", ["reg.example", "reg.example:5001", "11.0.0.1", "evil-listed", "[::2]:1", "["])
def test_others_are_secure(host: str) -> None:
    assert not is_insecure(host, RegistryOptions(insecure_hosts=("reg.example:5000", "10.0.0.0/8", "listed")))


def test_hostnames() -> None:
    assert [hostname(host) for host in ("a", "a:1", "[::1]:5", "[")] == ["a", "a", "::1", "["]


@pytest.mark.parametrize(
    ("url", "proxied"),
    [
        ("http://quay.io/v2/", True),
        ("https://quay.io/v2/", False),
        ("http://localhost:5000/", False),
        ("http://127.0.0.9/", False),
        ("http://[::1]/", False),
        ("http://internal/", False),
        ("http://a.internal/", False),
        ("http://notinternal/", True),
        ("http://a.dotted/", False),
        ("http://dotted/", False),
        ("http://192.168.3.4/", False),
        ("http://ported:81/", False),
        ("http://ported:82/", True),
    ],
)
def test_proxies(url: str, proxied: bool) -> None:
    proxies = {"http": "proxy:3128", "no": "internal, .dotted,dotted,192.168.0.0/16,ported:81,"}
    assert proxy_for(url, RegistryOptions(proxies=proxies)) == ("http://proxy:3128" if proxied else None)


def test_no_proxy_for_anything() -> None:
    proxies = {"http": "http://proxy:3128", "no": "*"}
    assert proxy_for("http://quay.io/", RegistryOptions(proxies=proxies)) is None
