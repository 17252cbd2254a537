from __future__ import annotations

import pytest

from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Dns
from isulad_py.runtime import pod_files


def test_resolv_conf_has_no_limits_of_its_own() -> None:
    dns = Dns(servers=tuple(f"192.0.2.{n}" for n in range(5)), searches=tuple(f"s{n}.example" for n in range(40)))
    text = pod_files.resolv_conf(dns)
    assert text.count("nameserver ") == 5
    assert text.startswith("search s0.example s1.example ")
    assert "options" not in text


@pytest.mark.parametrize("dns", [None, Dns()])
def test_nothing_set_means_the_hosts(dns: Dns | None) -> None:
    assert pod_files.resolv_conf(dns) == ""


@pytest.mark.parametrize("word", ["", "a b", "a\nb", "a\tb", "a\0b"])
def test_no_word_can_bring_a_line_of_its_own(word: str) -> None:
    with pytest.raises(InvalidInput, match=r"dns_config\.options"):
        pod_files.resolv_conf(Dns(options=(word,)))


@pytest.mark.parametrize("hostname", ["", "pod-a", "x" * 64, "with.dots", "ünicode"])
def test_hostnames(hostname: str) -> None:
    pod_files.check_hostname(hostname)


@pytest.mark.parametrize("hostname", ["x" * 65, "ü" * 33, "a b", "a\n", "a\0b", "a/b"])
def test_what_is_no_hostname(hostname: str) -> None:
    with pytest.raises(InvalidInput, match="hostname"):
        pod_files.check_hostname(hostname)


def test_hosts_names_the_pod_for_each_address() -> None:
    text = pod_files.hosts("pod-a", ("192.0.2.4", "2001:db8::4"))
    assert text.startswith("127.0.0.1\tlocalhost\n")
    assert text.endswith("192.0.2.4\tpod-a\n2001:db8::4\tpod-a\n")
