"""Presence of every message field that CRI gives a meaning of its own, with both codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import betterproto
import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.container import ContainerState
from isulad_py.model.errors import InvalidInput
from isulad_py.model.network import Dns
from isulad_py.model.pod import PodState
from isulad_py.model.resources import Resources
from isulad_py.model.security import ProfileKind, SecurityProfile, SELinuxLabel
from isulad_py.wire.translate import containers, filters, pods, presence, security

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="p"))
DEFAULT = SecurityProfile(kind=ProfileKind.RUNTIME_DEFAULT)


def _pod_security(message: cri.LinuxSandboxSecurityContext) -> Any:
    return security.pod_security(message, "s")


def _container_security(message: cri.LinuxContainerSecurityContext) -> Any:
    return security.container_security(message, "s")


def _pod(message: cri.PodSandboxConfig) -> Any:
    return pods.pod_config(message)


def _linux(message: cri.LinuxPodSandboxConfig) -> Any:
    whole = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="p"), linux=message)
    return pods.pod_config(cri.PodSandboxConfig().parse(bytes(whole)))


# (message, number of the field, translation, attribute that tells, what an empty message means)
FIELDS: list[tuple[type[betterproto.Message], int, Callable[[Any], Any], str, Any]] = [
    (cri.LinuxSandboxSecurityContext, 3, _pod_security, "run_as_user", 0),
    (cri.LinuxSandboxSecurityContext, 9, _pod_security, "seccomp", DEFAULT),
    (cri.LinuxSandboxSecurityContext, 10, _pod_security, "apparmor", DEFAULT),
    (cri.LinuxSandboxSecurityContext, 2, _pod_security, "selinux", SELinuxLabel()),
    (cri.LinuxContainerSecurityContext, 5, _container_security, "run_as_user", 0),
    (cri.LinuxContainerSecurityContext, 15, _container_security, "seccomp", DEFAULT),
    (cri.LinuxContainerSecurityContext, 16, _container_security, "apparmor", DEFAULT),
    (cri.LinuxContainerSecurityContext, 4, _container_security, "selinux", SELinuxLabel()),
    (cri.PodSandboxConfig, 4, _pod, "dns", Dns()),
    (cri.LinuxPodSandboxConfig, 4, _linux, "overhead", Resources()),
    (cri.LinuxPodSandboxConfig, 5, _linux, "resources", Resources()),
]


@pytest.mark.parametrize(("kind", "number", "translate", "attribute", "empty"), FIELDS)
def test_an_empty_message_is_not_an_absent_one(
    codec: str,
    kind: type[betterproto.Message],
    number: int,
    translate: Callable[[Any], Any],
    attribute: str,
    empty: Any,
) -> None:
    base = bytes(POD) if kind is cri.PodSandboxConfig else b""
    absent = translate(kind().parse(base))
    present = translate(kind().parse(base + betterproto.encode_varint(number << 3 | 2) + b"\0"))
    assert getattr(absent, attribute) is None
    assert getattr(present, attribute) == empty


def test_group_zero_beside_user_zero(codec: str) -> None:
    context = security.pod_security(cri.LinuxSandboxSecurityContext().parse(b"\x1a\x00\x42\x00"), "s")
    assert (context.run_as_user, context.run_as_group) == (0, 0)
    inner = security.container_security(cri.LinuxContainerSecurityContext().parse(b"\x2a\x00\x62\x00"), "s")
    assert (inner.run_as_user, inner.run_as_group) == (0, 0)


def test_a_state_filter_of_value_zero_is_a_filter(codec: str) -> None:
    assert filters.pod_filter(cri.PodSandboxFilter().parse(b"")) == PodFilter()
    assert filters.pod_filter(cri.PodSandboxFilter().parse(b"\x12\x00")).state is PodState.READY
    assert filters.container_filter(cri.ContainerFilter().parse(b"")) == ContainerFilter()
    assert filters.container_filter(cri.ContainerFilter().parse(b"\x12\x00")).state is ContainerState.CREATED


def test_an_image_volume_has_its_image(codec: str) -> None:
    head = bytes(cri.ContainerConfig(metadata=cri.ContainerMetadata(name="c"), image=cri.ImageSpec(image="i")))
    path = b"\x0a\x02/v"
    plain = cri.ContainerConfig().parse(head + b"\x3a\x08" + path + b"\x12\x02/h")
    assert containers.container_config(plain).mounts[0].image is None
    volume = cri.ContainerConfig().parse(head + b"\x3a\x0b" + path + b"\x18\x01\x4a\x03\x0a\x01v")
    image = containers.container_config(volume).mounts[0].image
    assert image is not None
    assert image.image == "v"
    nameless = cri.ContainerConfig().parse(head + b"\x3a\x06" + path + b"\x4a\x00")
    with pytest.raises(InvalidInput, match=r"config\.mounts\[0\]\.image\.image is empty"):
        containers.container_config(nameless)


def test_a_sandbox_configuration_may_be_absent(codec: str) -> None:
    absent = cri.CreateContainerRequest().parse(b"")
    assert pods.pod_config_if_given(absent.sandbox_config, "sandbox_config") is None
    empty = cri.CreateContainerRequest().parse(b"\x1a\x00")
    with pytest.raises(InvalidInput, match=r"sandbox_config\.metadata is missing"):
        pods.pod_config_if_given(empty.sandbox_config, "sandbox_config")


def test_what_goes_out_can_be_absent_or_zero(codec: str) -> None:
    absent = cri.CpuUsage(timestamp=1, usage_nano_cores=presence.or_absent(None))
    zero = cri.CpuUsage(timestamp=1, usage_nano_cores=cri.UInt64Value(value=0))
    assert bytes(absent) == b"\x08\x01"
    assert bytes(zero) == b"\x08\x01\x1a\x00"


def test_the_rust_codec_is_the_one_in_use() -> None:
    """Without it lists cost ten times as much, and truncated messages would be read as whole ones."""
    assert betterproto.Message.parse.__name__.endswith("parse_patch")
