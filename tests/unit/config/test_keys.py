"""The table of keys and the schema say the same."""

from __future__ import annotations

import shlex
import typing

import msgspec

from isulad_py.config.keys import BY_ATTRIBUTE, BY_NAME, KEYS, Kind
from isulad_py.config.schema import Config


def test_every_key_has_an_attribute_and_every_attribute_a_key() -> None:
    assert set(BY_ATTRIBUTE) == {field.name for field in msgspec.structs.fields(Config)}


def test_names_flags_and_short_forms_are_unique() -> None:
    flags = [flag for key in KEYS for flag in key.flags]
    assert len(flags) == len(set(flags))
    assert len(BY_NAME) == len(BY_ATTRIBUTE) == len(KEYS)


def test_kinds_fit_the_types() -> None:
    types = typing.get_type_hints(Config)
    simple = {Kind.TEXT: str, Kind.BOOL: bool, Kind.INT: int, Kind.DURATION: float}
    for key in KEYS:
        found = types[key.attribute]
        if key.kind in simple:
            assert found is simple[key.kind], key.name
        elif key.kind is Kind.MAP:
            assert typing.get_origin(found) is dict, key.name
        elif key.kind in {Kind.LIST, Kind.PATHS}:
            assert typing.get_origin(found) is tuple, key.name


def test_keys_of_isulad_are_all_known() -> None:
    names = shlex.split("""
    hosts group default-runtime runtimes cri-runtimes cri-sandboxers graph state engine log-level log-driver
    log-opts container-log pidfile storage-driver storage-opts storage-enable-remote-layer registry-mirrors
    insecure-registries insecure-skip-verify-enforce use-decrypted-key image-layer-check pod-sandbox-image
    network-plugin cni-bin-dir cni-conf-dir websocket-server-listening-port enable-cri-v1 enable-pod-events
    systemd-cgroup cgroup-parent native.umask hook-spec start-timeout default-ulimits cpu-rt-period cpu-rt-runtime
    selinux-enabled userns-remap enable-plugins authorization-plugin tls tls-verify tls-config metrics-port enable-cdi
    cdi-spec-dirs nri-support disable-connections plugin-config-path plugin-path nri-socket-path
    plugin-registration-timeout plugin-requst-timeout sup-groups""")
    assert set(names) <= set(BY_NAME)
