"""Real OCI runtimes run the hooks, and give what the edits of CDI devices say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isulad_py.model.container import Identity
from isulad_py.model.edits import WantedDevice
from isulad_py.runtime.injections import InjectionFiles, Places
from tests.integration.spec.test_runtimes import Bench, bench

__all__ = ["bench"]

pytestmark = pytest.mark.root


def hook(root: Path, name: str) -> Path:
    """A program that writes down the state that it is told, as the runtime gives it on its input."""
    program = root / f"{name}.sh"
    program.write_text(f'#!/bin/sh\ncat >{root}/{name}.state; echo "$0 $*" >>{root}/order\n')
    program.chmod(0o755)
    return program


async def test_hooks_run(bench: Bench) -> None:
    root = bench.root
    spec = {
        "prestart": [{"path": str(hook(root, "first")), "args": ["first", "a b"], "timeout": 10}],
        "poststop": [{"path": str(hook(root, "last"))}],
    }
    (root / "hooks.json").write_text(json.dumps(spec))
    directory = root / "hooks.d"
    directory.mkdir()
    for name, command in (("chosen", "sh$"), ("other", "^nothing$")):
        entry = {
            "version": "1.0.0",
            "hook": {"path": str(hook(root, name))},
            "when": {"commands": [command]},
            "stages": ["createRuntime"],
        }
        (directory / f"{name}.json").write_text(json.dumps(entry))
    entries = await InjectionFiles(Places(hook_spec=f"{root}/hooks.json", hook_dirs=(str(directory),))).hooks()
    done = await bench.sh("echo ran", hooks=entries)
    assert done.stdout == b"ran\n", done.stderr
    await bench.call("delete", "--force", bench.started[-1])
    assert json.loads((root / "first.state").read_text())["id"] == bench.started[-1]
    told = [line.partition(" ") for line in (root / "order").read_text().splitlines()]
    assert [Path(program).stem for program, _, _ in told] == ["first", "chosen", "last"]
    assert told[0][2] == "a b"


async def test_a_hook_that_fails_stops_the_container(bench: Bench) -> None:
    (bench.root / "hooks.json").write_text('{"createRuntime":[{"path":"/bin/false"}]}')
    entries = await InjectionFiles(Places(hook_spec=f"{bench.root}/hooks.json")).hooks()
    done = await bench.sh("echo ran", hooks=entries)
    assert done.returncode != 0
    assert done.stdout == b""


async def test_a_cdi_device(bench: Bench) -> None:
    specs, library = bench.root / "cdi", bench.root / "library"
    specs.mkdir()
    library.write_text("driver\n")
    (specs / "vendor.yaml").write_text(
        f"""
cdiVersion: 0.7.0
kind: vendor.com/gpu
containerEdits:
  env: [GPU=yes]
  mounts: [{{hostPath: {library}, containerPath: /data/library, options: [ro, bind]}}]
devices:
- name: "0"
  containerEdits:
    deviceNodes: [{{path: /dev/gpu0, hostPath: /dev/zero, permissions: r}}]
    additionalGids: [4711]
    hooks: [{{hookName: createRuntime, path: {hook(bench.root, "device")}}}]
"""
    )
    files = InjectionFiles(Places(cdi_dirs=(str(specs),)))
    wanted = [WantedDevice(name="vendor.com/gpu=0", field="config.CDI_devices[0]")]
    edits = await files.devices(wanted, Identity())
    script = "test -c /dev/gpu0 && cat /data/library; echo $GPU; grep Groups /proc/self/status; touch /data/library"
    done = await bench.sh(script, edits=edits)
    assert b"Read-only file system" in done.stderr
    assert done.stdout.split() == [b"driver", b"yes", b"Groups:", b"4711"]
    assert (bench.root / "device.state").exists()
