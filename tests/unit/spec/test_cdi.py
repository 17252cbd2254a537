from __future__ import annotations

import json
from typing import Any

import pytest

from isulad_py.model.container import ContainerConfig
from isulad_py.model.edits import WantedDevice
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.spec import cdi
from isulad_py.spec.cdi import Catalog, SpecFile
from tests.fakes.spec_inputs import config

YAML = b"""
cdiVersion: "0.5.0"
kind: vendor.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/gpu0
      hostPath: /dev/host-gpu0
      fileMode: 0640
containerEdits:
  env: [GPU=yes]
  hooks:
  - hookName: createContainer
    path: /usr/bin/gpu-hook
    args: [gpu-hook, update]
"""


def document(**fields: Any) -> dict[str, Any]:
    return {
        "cdiVersion": "0.6.0",
        "kind": "vendor.com/gpu",
        "devices": [{"name": "zero", "containerEdits": {"env": ["ZERO=1"]}}],
        **fields,
    }


def parsed(**fields: Any) -> cdi.Document:
    return cdi.parse(json.dumps(document(**fields)).encode(), is_yaml=False)


def edited(version: str = "1.1.0", **edits: Any) -> cdi.Document:
    return parsed(cdiVersion=version, devices=[{"name": "zero", "containerEdits": edits}])


def asked(name: str) -> WantedDevice:
    return WantedDevice(name=name, field="config.CDI_devices[0]")


def test_a_yaml_file_as_vendors_write_it() -> None:
    found = cdi.parse(YAML, is_yaml=True)
    [node] = found.devices[0].container_edits.device_nodes
    assert (node.path, node.host_path, node.file_mode) == ("/dev/gpu0", "/dev/host-gpu0", 0o640)
    assert found.container_edits.env == ("GPU=yes",)
    assert found.container_edits.hooks[0].hook_name == "createContainer"


@pytest.mark.parametrize("version", [*cdi.VERSIONS, "v0.7.0"])
def test_versions(version: str) -> None:
    assert parsed(cdiVersion=version).devices[0].name == "zero"


@pytest.mark.parametrize(
    "data",
    [
        b"a: &x [1]\nb: *x",
        b"[" * 1000,
        b"- " * 100_000,
        b"a: !!python/object/apply:os.system [true]",
        b"\xff\xfe\x00",
        b"a: 2001-99-99",
        b"? [a]\n: b",
        b"a: 1" + b":1" * 400_000,
        b"",
        b"--- 1\n--- 2\n",
        b'"\\x',
    ],
)
def test_hostile_yaml_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        cdi.parse(data, is_yaml=True)


@pytest.mark.parametrize("data", [b"", b"[]", b"[" * 100_000, b"\xff", b'{"kind":1}', b'{"a":1e999}'])
def test_hostile_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a CDI specification"):
        cdi.parse(data, is_yaml=False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"cdiVersion": "2.0.0"}, "cdiVersion"),
        ({"kind": "gpu"}, "kind"),
        ({"kind": "vendor.com/gpu/x"}, "kind"),
        ({"kind": "vendor.com/" + "g" * 64}, "kind"),
        ({"devices": []}, "devices"),
        ({"devices": [{"name": "../x"}]}, r"devices\[0\]\.name"),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, "twice"),
        ({"devices": [{"name": "a"}] * (cdi.MOST_DEVICES + 1)}, "devices"),
        ({"containerEdits": {"unknown": 1}}, "unknown"),
        ({"containerEdits": {"env": ["A"]}}, r"containerEdits\.env"),
        ({"containerEdits": {"env": ["A=\0"]}}, "NUL"),
        ({"containerEdits": {"deviceNodes": [{"path": "dev"}]}}, r"deviceNodes\[0\]\.path"),
        ({"containerEdits": {"deviceNodes": [{"path": "/dev/../x"}]}}, r"deviceNodes\[0\]\.path"),
        ({"containerEdits": {"deviceNodes": [{"path": "/d", "type": "x"}]}}, "type"),
        ({"containerEdits": {"deviceNodes": [{"path": "/d", "permissions": "x"}]}}, "permissions"),
        ({"containerEdits": {"deviceNodes": [{"path": "/d", "uid": -1}]}}, "uid"),
        ({"containerEdits": {"mounts": [{"hostPath": "/x", "containerPath": "/"}]}}, "containerPath"),
        ({"containerEdits": {"mounts": [{"hostPath": "", "containerPath": "/a"}]}}, "hostPath"),
        ({"containerEdits": {"hooks": [{"hookName": "later", "path": "/h"}]}}, "hookName"),
        ({"containerEdits": {"hooks": [{"hookName": "prestart", "path": "h"}]}}, r"hooks\[0\]\.path"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        parsed(**fields)


@pytest.mark.parametrize(
    ("version", "edits", "named"),
    [
        ("0.3.0", {"mounts": [{"hostPath": "/x", "containerPath": "/a", "type": "bind"}]}, "type of a mount"),
        ("0.4.0", {"deviceNodes": [{"path": "/d", "hostPath": "/e"}]}, "hostPath"),
        ("0.6.0", {"additionalGids": [1]}, "additionalGids"),
        ("0.6.0", {"intelRdt": {}}, "intelRdt"),
        ("1.0.0", {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}, "netDevices"),
    ],
)
def test_a_version_without_what_the_file_uses(version: str, edits: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        edited(version, **edits)


def test_names_that_older_versions_do_not_have() -> None:
    with pytest.raises(InvalidInput, match="digit"):
        parsed(cdiVersion="0.4.0", devices=[{"name": "0"}])
    with pytest.raises(InvalidInput, match="dot"):
        parsed(cdiVersion="0.5.0", kind="vendor.com/gpu.x")
    with pytest.raises(InvalidInput, match="annotations"):
        parsed(cdiVersion="0.5.0", annotations={"a": "b"})


def requested(*names: str, **annotations: str) -> ContainerConfig:
    return config(cdi_devices=names, annotations={f"cdi.k8s.io/{key}": value for key, value in annotations.items()})


def test_devices_by_field_and_annotation_each_once() -> None:
    found = cdi.wanted_devices(requested("v.com/c=a", "v.com/c=b", plugin="v.com/c=b,v.com/c=d:1"))
    assert [(device.name, device.field) for device in found] == [
        ("v.com/c=a", "config.CDI_devices[0]"),
        ("v.com/c=b", "config.CDI_devices[1]"),
        ("v.com/c=d:1", "config.annotations[cdi.k8s.io/plugin]"),
    ]
    assert cdi.wanted_devices(config(annotations={"other": "v.com/c=a"})) == ()


@pytest.mark.parametrize("name", ["", "a", "v.com/c", "v.com/c=", "/dev/null", "v.com/c=a/b", "v.com/c=a\n", "1v/c=a"])
def test_a_name_of_another_form(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[0\]"):
        cdi.wanted_devices(requested(name))
    with pytest.raises(InvalidInput, match=r"config\.annotations\[cdi\.k8s\.io/x\]"):
        cdi.wanted_devices(requested(x=name))


def test_too_many_devices() -> None:
    with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[256\]: more than 256"):
        cdi.wanted_devices(requested(*(f"v.com/c=d{i}" for i in range(300))))


def test_what_a_file_gives_to_all_its_devices_comes_once() -> None:
    both = parsed(
        devices=[{"name": "a", "containerEdits": {"env": ["A=1"]}}, {"name": "b", "containerEdits": {"env": ["B=1"]}}],
        containerEdits={"env": ["ALL=1"]},
    )
    catalog = Catalog([SpecFile(path="/etc/cdi/x.json", priority=0, document=both)])
    found = catalog.choose([asked("vendor.com/gpu=a"), asked("vendor.com/gpu=b")])
    assert [entry for one in found for entry in one.edits.env] == ["ALL=1", "A=1", "B=1"]


def of(priority: int, name: str) -> SpecFile:
    found = parsed(devices=[{"name": "zero", "containerEdits": {"env": [f"FROM={name}"]}}])
    return SpecFile(path=name, priority=priority, document=found)


def test_a_later_directory_wins() -> None:
    found = Catalog([of(1, "run"), of(0, "etc"), of(0, "etc2")]).choose([asked("vendor.com/gpu=zero")])
    assert found[-1].edits.env == ("FROM=run",)


def test_twice_in_directories_of_one_priority() -> None:
    catalog = Catalog([of(0, "older"), of(1, "one"), of(1, "two")])
    with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[0\].*more than once: one, two"):
        catalog.choose([asked("vendor.com/gpu=zero")])


def test_an_unknown_device_tells_which_files_could_not_be_read() -> None:
    catalog = Catalog([SpecFile(path="/etc/cdi/bad.json", priority=0, error="not a CDI specification")])
    with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[0\]: no CDI device .*; /etc/cdi/bad.json: not a"):
        catalog.choose([asked("vendor.com/gpu=zero")])


@pytest.mark.parametrize(
    ("edits", "named"),
    [
        ({"intelRdt": {"closID": "a"}}, "intelRdt"),
        ({"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}, "netDevices"),
        ({"deviceNodes": [{"path": "/p", "type": "p"}]}, "type p"),
    ],
)
def test_edits_that_cannot_be_made_are_refused_by_name(edits: dict[str, Any], named: str) -> None:
    catalog = Catalog([SpecFile(path="x", priority=0, document=edited(**edits))])
    with pytest.raises(Unsupported, match=rf"config\.CDI_devices\[0\]: .*{named}"):
        catalog.choose([asked("vendor.com/gpu=zero")])
