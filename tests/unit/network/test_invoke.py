from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isulad_py.model.errors import DeadlineExceeded, EngineError, HostFailure, Unavailable
from isulad_py.network.invoke import ByType, ExecInvoker, PluginCall
from tests.faults.cni_plugin import FaultyPlugin, install


@pytest.fixture
def plugin(tmp_path: Path) -> FaultyPlugin:
    return install(tmp_path, "faulty")


def invoker(tmp_path: Path, timeout_seconds: float = 60) -> ExecInvoker:
    return ExecInvoker(bin_dirs=(str(tmp_path / "none"), str(tmp_path)), timeout_seconds=timeout_seconds)


def call(command: str = "ADD", plugin: str = "faulty", **keys: Any) -> PluginCall:
    config = json.dumps({"cniVersion": "1.0.0", "name": "net", "type": plugin}).encode()
    known = {"container_id": "abc", "netns": "/ns", "ifname": "eth0", "args": "A=1"}
    return PluginCall(plugin=plugin, command=command, config=config, **{**known, **keys})


async def test_exactly_the_protocols_environment(
    tmp_path: Path, plugin: FaultyPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "1")
    output = await invoker(tmp_path).invoke(call())
    assert json.loads(output)["ips"]
    (seen,) = plugin.calls()
    assert json.loads(seen["stdin"])["type"] == "faulty"
    env = seen["env"]
    env.pop("LC_CTYPE", None)  # the interpreter that the plugin is written for sets it for itself
    assert env.pop("PATH").startswith("/usr")
    assert env == {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "abc",
        "CNI_NETNS": "/ns",
        "CNI_IFNAME": "eth0",
        "CNI_ARGS": "A=1",
        "CNI_PATH": f"{tmp_path}/none:{tmp_path}",
    }


async def test_a_namespace_that_is_gone_is_told_as_empty(tmp_path: Path, plugin: FaultyPlugin) -> None:
    await invoker(tmp_path).invoke(call("DEL", netns=""))
    assert plugin.calls()[0]["env"]["CNI_NETNS"] == ""


async def test_commands_without_a_container(tmp_path: Path, plugin: FaultyPlugin) -> None:
    await invoker(tmp_path).invoke(PluginCall(plugin="faulty", command="STATUS", config=b"{}"))
    assert {key for key in plugin.calls()[0]["env"] if key.startswith("CNI_")} == {"CNI_COMMAND", "CNI_PATH"}


@pytest.mark.parametrize(
    ("rule", "kind", "words"),
    [
        ({"do": "fail", "code": 7, "msg": "bad"}, HostFailure, "bad: by its test (code 7)"),
        ({"do": "fail", "code": 11}, Unavailable, "(code 11)"),
        ({"do": "fail", "code": 3}, HostFailure, "(code 3)"),
        ({"do": "crash"}, HostFailure, "exit 3: last words"),
        ({"do": "die"}, HostFailure, "killed by signal 9"),
        ({"do": "print", "text": "oh no", "exit": 1}, HostFailure, "exit 1: oh no"),
        ({"do": "print", "text": "", "exit": 1}, HostFailure, "exit 1"),
        ({"do": "flood"}, HostFailure, "printed more than 1048576 bytes"),
        ({"do": "flood", "exit": 1}, HostFailure, "exit 1: xxx"),
    ],
)
async def test_a_plugin_that_fails(
    tmp_path: Path, plugin: FaultyPlugin, rule: dict[str, Any], kind: type[EngineError], words: str
) -> None:
    plugin.tell({"command": "ADD", "call": 1, **rule})
    with pytest.raises(kind) as caught:
        await invoker(tmp_path).invoke(call())
    assert str(caught.value).startswith("plugin faulty (ADD): ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 4000
    await invoker(tmp_path).invoke(call())  # on call 1 only


async def test_deleting_what_a_plugin_does_not_know_is_success(tmp_path: Path, plugin: FaultyPlugin) -> None:
    plugin.tell({"command": "DEL", "do": "fail", "code": 3})
    await invoker(tmp_path).invoke(call("DEL"))


async def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path, plugin: FaultyPlugin) -> None:
    plugin.tell({"command": "ADD", "do": "hang"})
    with pytest.raises(DeadlineExceeded, match=r"plugin faulty \(ADD\): no end within 1 s"):
        await invoker(tmp_path, timeout_seconds=1).invoke(call())
    for pid in plugin.pids():
        await until_gone(pid)


async def until_gone(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    async with asyncio.timeout(10):
        while stat.exists() and ") Z " not in stat.read_text():
            await asyncio.sleep(0)


async def test_plugins_that_are_not_there(tmp_path: Path) -> None:
    plugins = invoker(tmp_path)
    (tmp_path / "plain").write_text("not executable")
    (tmp_path / "folder").mkdir()
    for name in ("missing", "plain", "folder", "\u00e9" * 255):
        assert plugins.identity(name) == ""
        with pytest.raises(HostFailure, match=f"plugin {name}: not found in {tmp_path}/none, {tmp_path}"):
            await plugins.invoke(call(plugin=name))


async def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(HostFailure, match=r"plugin text \(ADD\): cannot start"):
        await invoker(tmp_path).invoke(call(plugin="text"))


def test_the_identity_changes_with_the_binary(tmp_path: Path, plugin: FaultyPlugin) -> None:
    before = invoker(tmp_path).identity("faulty")
    assert before
    assert invoker(tmp_path).identity("faulty") == before
    plugin.path.write_text("#!/bin/sh\nexit 1\n")
    assert invoker(tmp_path).identity("faulty") != before


class InProcess:
    def identity(self, plugin: str) -> str:
        return f"ours:{plugin}"

    def absence(self, plugin: str) -> str:
        return f"{plugin} is ours"

    async def invoke(self, call: PluginCall) -> bytes:
        return b"ours"


async def test_types_may_be_served_in_process(tmp_path: Path, plugin: FaultyPlugin) -> None:
    measured: list[tuple[str, str]] = []

    @contextlib.contextmanager
    def measure(room: str, operation: str) -> Iterator[None]:
        measured.append((room, operation))
        yield

    plugins = ByType(served={"bridge": InProcess()}, rest=invoker(tmp_path), measure=measure)
    assert await plugins.invoke(call(plugin="bridge")) == b"ours"
    assert plugins.identity("bridge") == "ours:bridge"
    assert plugins.absence("bridge") == "bridge is ours"
    assert await plugins.invoke(call()) != b"ours"
    assert plugins.identity("faulty").startswith(str(tmp_path))
    assert "not found" in plugins.absence("x")
    assert measured == [("network", "bridge ADD"), ("network", "faulty ADD")]
