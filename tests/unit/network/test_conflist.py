from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.network import conflist

BRIDGE = {"type": "bridge", "bridge": "cni0", "ipam": {"type": "host-local"}}


def listed(**keys: object) -> bytes:
    return json.dumps({"cniVersion": "1.0.0", "name": "net", "plugins": [BRIDGE], **keys}).encode()


def test_a_list() -> None:
    config = conflist.parse(listed(plugins=[BRIDGE, {"type": "portmap", "capabilities": {"portMappings": True}}]))
    assert config.name == "net"
    assert config.version == "1.0.0"
    assert [plugin.type for plugin in config.plugins] == ["bridge", "portmap"]
    assert config.plugins[1].capabilities == {"portMappings"}
    assert not config.disable_check
    assert not config.disable_gc


def test_a_single_configuration_is_a_list_of_one() -> None:
    config = conflist.parse(json.dumps({"cniVersion": "0.3.1", "name": "one", **BRIDGE}).encode())
    assert [plugin.type for plugin in config.plugins] == ["bridge"]
    assert bytes(config.plugins[0].keys["ipam"]) == b'{"type": "host-local"}'


def test_unknown_keys_are_kept_byte_for_byte() -> None:
    odd = b'{"type":"x", "n": 1e999, "big": 12345678901234567890123, "a":  [ 1.0,2 ] }'
    config = conflist.parse(b'{"cniVersion":"1.0.0","name":"n","plugins":[' + odd + b"]}")
    keys = config.plugins[0].keys
    assert (bytes(keys["n"]), bytes(keys["big"]), bytes(keys["a"])) == (
        b"1e999",
        b"12345678901234567890123",
        b"[ 1.0,2 ]",
    )


@pytest.mark.parametrize(
    ("keys", "version"),
    [
        ({"cniVersion": "0.3.1"}, "0.3.1"),
        ({"cniVersion": "1.1.0"}, "1.1.0"),
        ({"cniVersion": "0.4.0", "cniVersions": ["1.0.0", "0.3.1"]}, "1.0.0"),
        ({"cniVersion": "1.0.0", "cniVersions": ["1.1.0", "2.0.0"]}, "1.1.0"),
        ({"cniVersion": "9.0.0", "cniVersions": ["0.4.0"]}, "0.4.0"),
    ],
)
def test_the_newest_version_that_we_speak_is_used(keys: dict[str, object], version: str) -> None:
    assert conflist.parse(listed(**keys)).version == version


@pytest.mark.parametrize(("value", "meant"), [(True, True), (False, False), ("true", True), ("False", False)])
def test_flags_may_be_words(value: object, meant: bool) -> None:
    config = conflist.parse(listed(disableCheck=value, disableGC=value))
    assert (config.disable_check, config.disable_gc) == (meant, meant)


def test_plugins_come_from_the_folder_too_unless_forbidden() -> None:
    asked: list[str] = []

    def siblings(name: str) -> list[tuple[str, bytes]]:
        asked.append(name)
        return [("net/10.conf", b'{"type":"tuning"}')]

    assert [p.type for p in conflist.parse(listed(), siblings).plugins] == ["bridge", "tuning"]
    assert [p.type for p in conflist.parse(b'{"cniVersion":"1.1.0","name":"net"}', siblings).plugins] == ["tuning"]
    assert asked == ["net", "net"]
    assert [p.type for p in conflist.parse(listed(loadOnlyInlinedPlugins=True), siblings).plugins] == ["bridge"]
    assert asked == ["net", "net"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"not json", "malformed"),
        (b"[]", "object"),
        (b"\xff", "utf-8"),
        (b'{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"x","k":"\xff"}]}', "utf-8"),
        (listed(name=1), "name"),
        (listed(name="a/b"), "name"),
        (listed(name="../x"), "name"),
        (listed(name=""), "name"),
        (listed(cniVersion=1), "cniVersion"),
        (listed(cniVersion="0.1.0"), "cniVersion"),
        (listed(cniVersion="2.0.0"), "cniVersion"),
        (b'{"name":"n","plugins":[{"type":"x"}]}', "cniVersion"),
        (listed(cniVersions="1.0.0"), "cniVersions"),
        (listed(plugins=[]), "plugins"),
        (listed(plugins={}), "plugins"),
        (listed(plugins=[1]), "plugins[0]"),
        (listed(plugins=[BRIDGE, {}]), "plugins[1]"),
        (listed(plugins=[{"type": "../../bin/sh"}]), "plugins[0].type"),
        (listed(plugins=[{"type": ".."}]), "plugins[0].type"),
        (listed(plugins=[{"type": ""}]), "plugins[0].type"),
        (listed(plugins=[{"type": "a\x00b"}]), "plugins[0].type"),
        (listed(plugins=[{"type": "x", "capabilities": ["portMappings"]}]), "capabilities"),
        (listed(plugins=[{"type": "x", "capabilities": {"portMappings": "yes"}}]), "capabilities"),
        (listed(plugins=[BRIDGE] * 65), "65"),
        (listed(disableCheck="maybe"), "disableCheck"),
        (listed(disableGC=1), "disableGC"),
        (b'{"cniVersion":"1.1.0","name":"n","loadOnlyInlinedPlugins":true}', "plugins"),
        (b'{"cniVersion":"1.1.0","name":"n"}', "plugins"),
        (b'{"a":' * 100_000, "deep"),
        (b'{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"x","k":' + b"[" * 100_000, "deep"),
        (b" " * (1024 * 1024 + 1), "larger"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        conflist.parse(data)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["cniVersion", "cniVersions", "name", "plugins", "type", "capabilities", "disableCheck"]),
        json_values,
    )
)
def test_any_document_is_parsed_or_refused(document: dict[str, object]) -> None:
    with contextlib.suppress(EngineError):
        conflist.parse(json.dumps(document).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        conflist.parse(data)


@given(st.dictionaries(st.text(min_size=1).filter(lambda k: k not in ("type", "capabilities")), json_values))
def test_the_recorded_document_says_the_same(keys: dict[str, object]) -> None:
    config = conflist.parse(listed(plugins=[{"type": "x", "capabilities": {"dns": True}, **keys}], disableGC=True))
    again = conflist.parse(config.document().encode(), lambda _: [("more", b'{"type":"more"}')])
    assert again == config


class TestSettle:
    config = conflist.parse(listed(cniVersions=["0.4.0", "1.1.0"], plugins=[BRIDGE, {"type": "firewall"}]))

    def test_unknown_plugins_keep_the_newest(self) -> None:
        assert conflist.settle(self.config, [frozenset(), frozenset()]).version == "1.1.0"

    def test_the_newest_common_version(self) -> None:
        speaks = [frozenset({"0.4.0", "1.0.0", "1.1.0"}), frozenset({"0.4.0", "1.0.0"})]
        assert conflist.settle(self.config, speaks).version == "1.0.0"

    def test_none_in_common_names_the_plugin(self) -> None:
        with pytest.raises(InvalidInput, match=r"plugin firewall: speaks 0\.2\.0"):
            conflist.settle(self.config, [frozenset(), frozenset({"0.2.0"})])

    def test_since(self) -> None:
        assert self.config.since("1.1.0")
        assert not conflist.parse(listed()).since("1.1.0")
        assert conflist.parse(listed()).since("0.4.0")
