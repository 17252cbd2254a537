from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from isulad_py.model.container import Identity
from isulad_py.model.edits import EditMount, Edits, WantedDevice
from isulad_py.model.errors import FailedPrecondition, InvalidInput, Unsupported
from isulad_py.runtime.injections import InjectionFiles, Places

ROOT = Identity()


class Declared:
    """Two directories of specifications, and who reads them."""

    def __init__(self, root: Path) -> None:
        self.etc, self.run = root / "etc", root / "run"
        self.etc.mkdir()
        self.files = InjectionFiles(Places(cdi_dirs=(str(self.etc), str(self.run))))

    def write(self, directory: Path, file: str = "v.json", device: str = "a", **edits: Any) -> Path:
        directory.mkdir(exist_ok=True)
        devices = [{"name": device, "containerEdits": edits}]
        path = directory / file
        path.write_text(json.dumps({"cdiVersion": "0.7.0", "kind": "v.com/c", "devices": devices}))
        return path

    async def get(self, *names: str, owner: Identity = ROOT) -> Edits:
        wanted = [
            WantedDevice(name=f"v.com/c={name}", field=f"config.CDI_devices[{i}]") for i, name in enumerate(names)
        ]
        return await self.files.devices(wanted, owner)


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    return Declared(tmp_path)


async def test_changes_are_seen_and_the_later_directory_wins(declared: Declared) -> None:
    with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[0\]: no CDI device v\.com/c=a$"):
        await declared.get("a")
    declared.write(declared.etc, env=["FROM=etc"])
    assert (await declared.get("a")).env == ("FROM=etc",)
    path = declared.write(declared.run, env=["FROM=run"])
    assert (await declared.get("a")).env == ("FROM=run",)
    path.unlink()
    assert (await declared.get("a")).env == ("FROM=etc",)


async def test_yaml_beside_json_and_broken_files_beside_good_ones(declared: Declared) -> None:
    declared.write(declared.etc, env=["A=1"])
    text = 'cdiVersion: 0.5.0\nkind: v.com/c\ndevices: [{name: "0", containerEdits: {env: [Y=1]}}]\n'
    (declared.etc / "y.yaml").write_text(text)
    (declared.etc / "broken.yaml").write_text("a: &x [1]\nb: *x\n")
    (declared.etc / "loop.json").symlink_to("loop.json")
    os.mkfifo(declared.etc / "fifo.json")
    assert (await declared.get("a", "0")).env == ("A=1", "Y=1")
    with pytest.raises(InvalidInput, match=r"CDI_devices\[1\]: no CDI device v\.com/c=b; .*broken.yaml: YAML aliases"):
        await declared.get("a", "b")


async def test_device_nodes_take_from_the_host_what_they_leave_out(declared: Declared) -> None:
    nodes = [
        {"path": "/dev/n", "hostPath": "/dev/null", "permissions": "r"},
        {"path": "/dev/zero", "type": "u", "fileMode": 0o600, "uid": 7, "gid": 8},
        {"path": "/dev/not-here", "type": "c", "major": 195, "minor": 3, "permissions": "none"},
    ]
    declared.write(declared.etc, deviceNodes=nodes)
    null, zero, absent = (await declared.get("a", owner=Identity(uid=5, gid=6))).devices
    assert (null.path, null.type, null.major, null.minor, null.permissions) == ("/dev/n", "c", 1, 3, "r")
    assert (null.uid, null.gid) == (5, 6)
    assert (zero.type, zero.major, zero.minor, zero.mode, zero.uid, zero.gid) == ("c", 1, 5, 0o600, 7, 8)
    assert (absent.type, absent.major, absent.minor, absent.mode, absent.permissions) == ("c", 195, 3, 0o666, "none")


@pytest.mark.parametrize(
    "node", [{"path": "/dev/not-here"}, {"path": "/dev/null", "type": "b"}, {"path": "/dev"}, {"path": "/etc/passwd"}]
)
async def test_a_node_that_the_host_does_not_have(declared: Declared, node: dict[str, Any]) -> None:
    declared.write(declared.etc, deviceNodes=[node])
    with pytest.raises(InvalidInput, match=rf"config\.CDI_devices\[0\]: v\.com/c=a needs {node['path']}"):
        await declared.get("a")


async def test_mounts(declared: Declared, tmp_path: Path) -> None:
    source = str(tmp_path)
    mounts = [
        {"hostPath": source, "containerPath": "/a"},
        {"hostPath": source, "containerPath": "/b", "options": ["ro", "bind"]},
        {"hostPath": "tmpfs", "containerPath": "/c", "type": "tmpfs", "options": ["size=1m"]},
    ]
    declared.write(declared.etc, mounts=mounts)
    assert (await declared.get("a")).mounts == (
        EditMount(destination="/a", source=source, type="bind", options=("rbind",)),
        EditMount(destination="/b", source=source, type="bind", options=("ro", "bind")),
        EditMount(destination="/c", source="tmpfs", type="tmpfs", options=("size=1m",)),
    )
    for missing in (f"{source}/missing", "relative"):
        declared.write(declared.etc, mounts=[{"hostPath": missing, "containerPath": "/a"}])
        with pytest.raises(InvalidInput, match=r"config\.CDI_devices\[0\]: v\.com/c=a mounts .*does not exist"):
            await declared.get("a")


async def test_hooks_and_groups_of_devices(declared: Declared) -> None:
    declared.write(
        declared.etc, hooks=[{"hookName": "poststop", "path": "/bin/h", "timeout": 2}], additionalGids=[4, 5]
    )
    found = await declared.get("a")
    assert [(one.stage, one.hook.path, one.hook.timeout) for one in found.hooks] == [("poststop", "/bin/h", 2)]
    assert found.additional_gids == (4, 5)


async def test_where_cdi_is_off() -> None:
    files = InjectionFiles(Places())
    assert await files.devices([], ROOT) == Edits()
    with pytest.raises(Unsupported, match=r"config\.CDI_devices\[0\]: CDI is off"):
        await files.devices([WantedDevice(name="v.com/c=a", field="config.CDI_devices[0]")], ROOT)


def hook_file(path: str) -> str:
    entry = {"version": "1.0.0", "hook": {"path": path}, "when": {"always": True}, "stages": ["prestart"]}
    return json.dumps(entry)


async def test_operators_hooks_in_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    spec = tmp_path / "hooks.json"
    spec.write_text('{"poststop":[{"path":"/bin/spec"}]}')
    (first / "20.json").write_text(hook_file("/bin/masked"))
    (second / "20.json").write_text(hook_file("/bin/20"))
    (second / "10.json").write_text(hook_file("/bin/10"))
    (second / "README").write_text("no hook")
    places = Places(hook_spec=str(spec), hook_dirs=(str(first), str(second), str(tmp_path / "none")))
    files = InjectionFiles(places)
    assert [entry.hook.path for entry in await files.hooks()] == ["/bin/spec", "/bin/10", "/bin/20"]
    assert await InjectionFiles(Places()).hooks() == ()
    (second / "10.json").write_text("{")
    with pytest.raises(FailedPrecondition, match=r"hooks-dir: .*/second/10\.json"):
        await files.hooks()
    (second / "10.json").unlink()
    spec.unlink()
    with pytest.raises(FailedPrecondition, match=r"hook-spec: .*/hooks\.json"):
        await files.hooks()
