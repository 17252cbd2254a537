from __future__ import annotations

import pytest

from isulad_py.config.schema import Config, RegistryEntry
from isulad_py.config.validate_storage import check


@pytest.mark.parametrize(
    "host", ["docker.io", "localhost:5000", "[::1]:5000", "10.0.0.1", "http://m:80", "https://m/path"]
)
def test_mirrors_that_are_hosts(host: str) -> None:
    assert list(check(Config(registry_mirrors=(host,)), lambda path: True)) == []


def test_overlay_is_an_alias() -> None:
    assert list(check(Config(storage_driver="overlay"), lambda path: True)) == []


@pytest.mark.parametrize("options", [(), ("overlay2.size=10G",), ("overlay2.basesize=4096", "overlay2.size=4096")])
def test_sizes_of_containers(options: tuple[str, ...]) -> None:
    assert list(check(Config(storage_opts=options), lambda path: True)) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("overlay2.size=much",), "'much' is not a size"),
        (("overlay2.size=1K",), "at least 4096"),
        (("overlay2.size=1G", "overlay2.basesize=2G"), "different sizes"),
    ],
)
def test_sizes_that_are_none(options: tuple[str, ...], told: str) -> None:
    (finding,) = check(Config(storage_opts=options), lambda path: True)
    assert (finding.id, finding.key) == ("bad-value", "storage-opts")
    assert told in finding.message


@pytest.mark.parametrize("host", ["10.0.0.0/8", "fd00::/8", "127.0.0.1:5000", "registry.local"])
def test_hosts_and_networks_may_be_insecure(host: str) -> None:
    assert list(check(Config(insecure_registries=(host,)), lambda path: True)) == []


def test_a_network_that_is_none() -> None:
    assert list(check(Config(insecure_registries=("10.0.0.0/33",)), lambda path: True))


@pytest.mark.parametrize("host", ["host:99999", "http://host:70000/x", "host:abc", "http://[::1", "[::1]:65536"])
@pytest.mark.parametrize("key", ["registry-mirrors", "registries", "insecure-registries"])
def test_ports_that_are_none(key: str, host: str) -> None:
    configs = {
        "registry-mirrors": Config(registry_mirrors=(host,)),
        "registries": Config(registries={"docker.io": RegistryEntry(mirrors=(host,))}),
        "insecure-registries": Config(insecure_registries=(host,)),
    }
    [finding] = check(configs[key], lambda path: True)
    assert (finding.key, finding.id) == (key, "bad-value")
    assert host in finding.message
