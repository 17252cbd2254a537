from __future__ import annotations

import pytest

from isulad_py.model.container import Device
from isulad_py.model.devices import HostDevice
from isulad_py.model.errors import InvalidInput
from isulad_py.spec import devices, schema

FUSE = HostDevice(path="/dev/fuse", type="c", major=10, minor=229, mode=0o660, gid=44, permissions="rw")


def test_a_node_is_as_on_the_host() -> None:
    assert devices.nodes([FUSE]) == (
        schema.Device(type="c", path="/dev/fuse", major=10, minor=229, file_mode=0o660, uid=0, gid=44),
    )


def test_of_two_on_one_path_the_last_wins() -> None:
    other = HostDevice(path="/dev/fuse", type="c", major=1, minor=5)
    assert [device.minor for device in devices.nodes([FUSE, other])] == [5]


def test_nothing_is_open_but_what_is_named() -> None:
    assert devices.rules([FUSE], privileged=False) == (
        schema.DeviceRule(allow=False, access="rwm"),
        schema.DeviceRule(allow=True, type="c", major=10, minor=229, access="rw"),
    )


def test_all_is_open_to_a_privileged_container() -> None:
    assert devices.rules([FUSE], privileged=True) == (schema.DeviceRule(allow=True, access="rwm"),)


@pytest.mark.parametrize(
    ("device", "field"),
    [
        (Device(container_path="fuse", host_path="/dev/fuse"), "container_path"),
        (Device(container_path="/dev/../x", host_path="/dev/fuse"), "container_path"),
        (Device(container_path="/dev/fuse", host_path=""), "host_path"),
        (Device(container_path="/dev/fuse", host_path="/dev/fuse", permissions="rx"), "permissions"),
    ],
)
def test_bad_requests_are_refused_by_field(device: Device, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"config\.devices\[1\]\.{field}"):
        devices.check([Device(container_path="/dev/a", host_path="/dev/a", permissions="rwm"), device])
