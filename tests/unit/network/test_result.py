from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.errors import HostFailure
from isulad_py.network import result

INTERFACES = [{"name": "veth1"}, {"name": "eth0", "sandbox": "/ns"}, {"name": "net1", "sandbox": "/ns"}]


def printed(**keys: Any) -> bytes:
    return json.dumps({"cniVersion": "1.0.0", "interfaces": INTERFACES, **keys}, indent=4).encode()


def addresses(*ips: dict[str, Any]) -> tuple[str, ...]:
    return result.conclude(result.link(printed(ips=list(ips)), "1.0.0"), "eth0").ips


def test_dual_stack_in_the_order_of_the_result() -> None:
    assert addresses({"address": "fd00::2/64", "interface": 1}, {"address": "10.0.0.2/24", "interface": 1}) == (
        "fd00::2",
        "10.0.0.2",
    )


def test_the_form_before_1_0() -> None:
    raw = printed(cniVersion="0.3.1", ips=[{"version": "4", "address": "10.0.0.2/24", "interface": 1}])
    assert result.conclude(result.link(raw, "0.3.1"), "eth0").ips == ("10.0.0.2",)


def test_host_side_addresses_are_not_the_pods() -> None:
    assert addresses({"address": "10.0.0.1/24", "interface": 0}, {"address": "10.0.0.2/24", "interface": 1}) == (
        "10.0.0.2",
    )


def test_the_pods_own_interface_comes_first() -> None:
    assert addresses({"address": "10.1.0.2/24", "interface": 2}, {"address": "10.0.0.2/24", "interface": 1}) == (
        "10.0.0.2",
    )


def test_another_interface_is_better_than_none() -> None:
    raw = result.link(printed(ips=[{"address": "10.1.0.2/24", "interface": 2}]), "1.0.0")
    found = result.conclude(raw, "eth0")
    assert (found.ips, found.interface) == (("10.1.0.2",), "net1")


def test_addresses_without_an_interface_are_the_pods() -> None:
    assert addresses({"address": "10.0.0.2/24"}) == ("10.0.0.2",)


def test_the_same_address_once() -> None:
    assert addresses({"address": "10.0.0.2/24"}, {"address": "10.0.0.2/24"}) == ("10.0.0.2",)


def test_no_address_is_an_error() -> None:
    for ips in ([], None, [{"address": "10.0.0.1/24", "interface": 0}]):
        raw = result.link(printed(ips=ips), "1.0.0")
        with pytest.raises(HostFailure, match="no address for eth0"):
            result.conclude(raw, "eth0")


def test_a_missing_version_is_that_of_the_configuration() -> None:
    raw = result.link(b'{"ips":[{"address":"10.0.0.2/24"}],"odd":1e999}', "0.4.0")
    assert json.loads(raw)["cniVersion"] == "0.4.0"
    assert '"odd":1e999' in raw


def test_the_result_is_kept_whole() -> None:
    raw = result.link(printed(ips=[{"address": "10.0.0.2/24"}], dns={"domain": "x"}, routes=[{"dst": "::/0"}]), "1.0.0")
    assert json.loads(raw)["dns"] == {"domain": "x"}
    assert json.loads(raw)["routes"] == [{"dst": "::/0"}]
    assert "\n" not in raw


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", "output"),
        (b"rubbish", "output"),
        (b"[]", "output"),
        (b"\xff\xfe", "output"),
        (b"[" * 100_000, "output"),
        (b'{"x":' * 100_000, "deep"),
        (printed(cniVersion="7.0.0"), "cniVersion"),
        (printed(ips=[{"address": "10.0.0.300/24"}]), "ips[0]"),
        (printed(ips=[{"address": "10.0.0.3"}]), "CIDR"),
        (printed(ips=[{"address": "fe80::1%eth0/64"}]), "ips[0]"),
        (printed(ips=[{"address": "10.0.0.3/24", "gateway": "nobody"}]), "ips[0]"),
        (printed(ips=[{"address": "10.0.0.3/24"}, {"address": "10.0.0.3/24", "interface": 3}]), "ips[1].interface"),
        (printed(ips=[{"address": "10.0.0.3/24", "interface": -1}]), "ips[0].interface"),
        (printed(ips=[{"address": 1}]), "ips[0].address"),
        (printed(cniVersion="", ips=[{"address": "10.0.0.300/24"}]), "ips[0]"),
        (printed(ips=[{}]), "address"),
        (printed(ips={}), "ips"),
        (printed(interfaces=[{"mac": "x"}]), "name"),
    ],
)
def test_what_is_wrong_is_named(output: bytes, words: str) -> None:
    with pytest.raises(HostFailure) as caught:
        result.link(output, "1.0.0")
    assert words in str(caught.value)


@given(
    st.binary(max_size=100)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())
)
def test_any_output_is_refused(output: bytes) -> None:
    with pytest.raises(HostFailure):
        result.link(output, "1.0.0")


def test_error_objects() -> None:
    error = result.error_object(b'{"cniVersion":"1.0.0","code":7,"msg":"bad","details":"subnet"}')
    assert error is not None
    assert error.words() == "bad: subnet (code 7)"
    assert result.error_object(b'{"code":11}') is not None
    for other in (b"", b"oops", b"{}", b'{"code":"x"}', b"[]", b'{"ips":[]}'):
        assert result.error_object(other) is None


def test_versions() -> None:
    assert result.versions(b'{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}') == {"0.4.0", "1.0.0"}
    assert result.versions(b"hello") == frozenset()
