"""CDI devices and OCI hooks, from daemon.json to what a container sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.stand.node import Node, stand_node

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's files; hooks write what they are told into `told`."""
    root = tmp_path_factory.mktemp("injections")
    for name in ("cdi", "hooks.d", "told"):
        (root / name).mkdir()
    program = root / "hook.sh"
    program.write_text(f'#!/bin/sh\nexec cat >{root}/told/"$1"\n')
    program.chmod(0o755)
    (root / "hooks.json").write_text(json.dumps({"poststop": [{"path": str(program), "args": ["hook", "poststop"]}]}))
    entry = {
        "version": "1.0.0",
        "hook": {"path": str(program), "args": ["hook", "annotated"]},
        "when": {"annotations": {"^example.com/hook$": "^yes$"}},
        "stages": ["createRuntime"],
    }
    (root / "hooks.d" / "annotated.json").write_text(json.dumps(entry))
    return root


@pytest.fixture(scope="module")
def injecting(places: Path) -> Iterator[Node]:
    keys = {
        "enable_cdi": True,
        "cdi_spec_dirs": [str(places / "cdi")],
        "hook_spec": str(places / "hooks.json"),
        "hooks_dir": [str(places / "hooks.d")],
    }
    with stand_node("inj", **keys) as node:
        node.pull()
        yield node


def test_devices_by_field_and_by_annotation(injecting: Node, places: Path) -> None:
    node = injecting
    devices = [
        {"name": "one", "containerEdits": {"deviceNodes": [{"path": "/dev/one", "hostPath": "/dev/zero"}]}},
        {"name": "two", "containerEdits": {"env": ["TWO=2"]}},
    ]
    document = {"cdiVersion": "0.6.0", "kind": "example.com/thing", "devices": devices}
    pod_id = node.run_pod(node.pod_config("cdi"))
    # Written after the daemon's start, as device plugins do it.
    (places / "cdi" / "thing.json").write_text(json.dumps(document))
    container_id = node.run_container(
        pod_id,
        "sleep",
        "1000",
        CDI_devices=[node.m.CDIDevice(name="example.com/thing=one")],
        annotations={"cdi.k8s.io/plugin_two": "example.com/thing=two"},
    )
    answer = node.exec(container_id, "sh", "-c", "head -c 3 /dev/one | wc -c; echo $TWO")
    assert answer.stdout.split() == [b"3", b"2"], answer.stderr
    for name in ("example.com/thing=three", "/dev/zero"):
        wrong = node.container_config(name="wrong", CDI_devices=[node.m.CDIDevice(name=name)])
        with pytest.raises(grpc.RpcError) as refused:
            node.create(pod_id, wrong)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "config.CDI_devices[0]" in refused.value.details()
    node.clear_pods()
    assert node.left_of_pods() == []


def test_hooks_run_where_they_are_meant(injecting: Node, places: Path) -> None:
    node = injecting
    pod_id = node.run_pod(node.pod_config("hooks"))
    plain = node.run_container(pod_id, "sleep", "1000", name="plain")
    assert not (places / "told" / "annotated").exists()
    chosen = node.run_container(pod_id, "sleep", "1000", name="chosen", annotations={"example.com/hook": "yes"})
    assert json.loads((places / "told" / "annotated").read_text())["id"] == chosen
    node.call("StopContainer", node.m.StopContainerRequest(container_id=plain, timeout=0))
    node.call("RemoveContainer", node.m.RemoveContainerRequest(container_id=plain))
    assert json.loads((places / "told" / "poststop").read_text())["id"] == plain
    node.clear_pods()
    assert node.left_of_pods() == []
