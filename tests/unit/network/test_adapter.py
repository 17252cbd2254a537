"""Chains of plugins that fail, hang and lie: what the adapter makes of them. Processes, but no root needed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from isulad_py.model.errors import (
    DataLoss,
    DeadlineExceeded,
    EngineError,
    FailedPrecondition,
    HostFailure,
    InvalidInput,
    Unavailable,
)
from isulad_py.model.network import Attachment, NetworkResult, PortMapping
from isulad_py.network.adapter import CniNetwork
from tests.faults.cni_plugin import FaultyPlugin, install


class Chain:
    """A network of faulty plugins `one`, `two`, ..."""

    def __init__(self, root: Path, *names: str, timeout_seconds: float = 60, **keys: Any) -> None:
        self.conf, self.bin = root / "net.d", root / "bin"
        for folder in (self.conf, self.bin):
            folder.mkdir(exist_ok=True)
        self.plugins: dict[str, FaultyPlugin] = {name: install(self.bin, name) for name in names}
        plugins = [{"type": name, "capabilities": {"portMappings": True, "ipRanges": True}} for name in names]
        self.put(plugins=plugins, **keys)
        self.network = CniNetwork(
            conf_dir=str(self.conf), bin_dirs=(str(self.bin),), plugin_timeout_seconds=timeout_seconds
        )

    def put(self, **keys: Any) -> None:
        (self.conf / "10.conflist").write_text(json.dumps({"cniVersion": "1.0.0", "name": "net", **keys}))

    def pod(self, pod_id: str = "p1", **keys: Any) -> Attachment:
        attachment = Attachment(pod_id=pod_id, name="n", namespace="s", uid="u", netns_path="/gone", **keys)
        return self.network.prepare(attachment)

    def commands(self) -> dict[str, list[str]]:
        return {name: [call["command"] for call in plugin.calls()] for name, plugin in self.plugins.items()}

    def held(self) -> set[str]:
        return set().union(*(plugin.held() for plugin in self.plugins.values()))

    def told(self, name: str, command: str) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.plugins[name].calls(command)[-1]["stdin"])
        return config


async def chain(root: Path, *names: str, **keys: Any) -> Chain:
    made = Chain(root, *names, **keys)
    await made.network.reload()
    return made


async def test_add_hands_each_result_on(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    result = await c.network.attach(c.pod())
    assert result.ips[0].startswith("192.0.2.")
    assert result.interface == "eth0"
    assert "prevResult" not in c.told("one", "ADD")
    assert c.told("two", "ADD")["prevResult"] == json.loads(result.raw)


async def test_delete_goes_backwards_with_the_recorded_configuration(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    await c.network.set_pod_cidr("10.1.0.0/24")
    attachment = c.pod(port_mappings=(PortMapping(container_port=80, host_port=8080),))
    result = await c.network.attach(attachment)
    c.put(name="other", plugins=[{"type": "missing"}])
    await c.network.reload()
    await c.network.set_pod_cidr("10.9.0.0/24")
    await c.network.detach(attachment, result)
    for name in ("one", "two"):
        added, deleted = c.told(name, "ADD"), c.told(name, "DEL")
        assert deleted["name"] == "net"
        assert deleted["runtimeConfig"] == added["runtimeConfig"]
        assert deleted["runtimeConfig"]["ipRanges"] == [[{"subnet": "10.1.0.0/24"}]]
        assert deleted["prevResult"] == json.loads(result.raw)
        assert c.plugins[name].calls("DEL")[0]["env"]["CNI_NETNS"] == ""  # /gone is no namespace
        assert c.plugins[name].calls("DEL")[0]["env"]["CNI_ARGS"] == c.plugins[name].calls("ADD")[0]["env"]["CNI_ARGS"]
    assert c.held() == set()


async def test_deleting_without_a_result(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    await c.network.detach(c.pod(), None)
    assert "prevResult" not in c.told("one", "DEL")


async def test_deleting_before_0_4_has_no_result(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", cniVersion="0.3.1")
    attachment = c.pod()
    result = await c.network.attach(attachment)
    await c.network.detach(attachment, result)
    assert "prevResult" not in c.told("one", "DEL")
    await c.network.check(attachment, result)
    assert c.commands()["one"] == ["ADD", "DEL"]


FAULTS: list[tuple[dict[str, Any], type[EngineError], str]] = [
    ({"do": "fail", "code": 7, "msg": "bad"}, HostFailure, "network net: plugin two (ADD): bad: by its test (code 7)"),
    ({"do": "fail", "code": 11, "msg": "later"}, Unavailable, "network net: plugin two (ADD): later"),
    ({"do": "crash"}, HostFailure, "network net: plugin two (ADD): exit 3: last words"),
    ({"do": "print", "text": "rubbish"}, HostFailure, "network net: plugin two (ADD): output is not"),
    ({"do": "print", "text": ""}, HostFailure, "network net: plugin two (ADD): output is not"),
    ({"do": "print", "text": '{"a":' * 100_000}, HostFailure, "network net: plugin two (ADD): output is nested"),
    ({"do": "print", "text": '{"ips":[{"address":"x"}]}'}, HostFailure, "network net: plugin two (ADD): result has"),
    ({"do": "print", "text": "{}"}, HostFailure, "network net: result has no address for eth0"),
    ({"do": "flood"}, HostFailure, "network net: plugin two (ADD): printed more"),
]


@pytest.mark.parametrize(("rule", "kind", "words"), FAULTS)
async def test_a_failed_chain_is_undone(
    tmp_path: Path, rule: dict[str, Any], kind: type[EngineError], words: str
) -> None:
    c = await chain(tmp_path, "one", "two", "three")
    c.plugins["two"].tell({"command": "ADD", **rule})
    if rule.get("text") == "{}":
        c.plugins["three"].tell({"command": "ADD", **rule})
    with pytest.raises(kind) as caught:
        await c.network.attach(c.pod())
    assert str(caught.value).startswith(words)
    assert c.held() == set()
    commands = c.commands()
    assert commands["one"] == commands["two"] == ["ADD", "DEL"]
    assert commands["three"][-1] == "DEL"


async def test_a_hang_is_ended_and_undone(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two", timeout_seconds=3)
    c.plugins["two"].tell({"command": "ADD", "do": "hang"})
    with pytest.raises(DeadlineExceeded, match=r"network net: plugin two \(ADD\): no end within 3 s"):
        await c.network.attach(c.pod())
    assert c.held() == set()


async def test_what_cannot_be_undone_is_told_with_the_cause(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    c.plugins["two"].tell({"command": "ADD", "do": "crash"}, {"command": "DEL", "do": "fail", "msg": "stuck"})
    with pytest.raises(HostFailure) as caught:
        await c.network.attach(c.pod())
    assert str(caught.value).startswith("network net: plugin two (ADD): exit 3")
    assert "while undoing: network net: plugin two (DEL): stuck" in str(caught.value)
    assert c.plugins["one"].held() == set()


async def waiting(plugin: FaultyPlugin) -> None:
    """Until the plugin is in the middle of a call that was told to wait."""
    async with asyncio.timeout(60):
        while not (plugin.folder / "waiting").exists():
            await asyncio.sleep(0.01)


async def test_a_cancelled_chain_is_undone(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    c.plugins["two"].tell({"command": "ADD", "do": "wait", "for": str(tmp_path / "never")})
    task = asyncio.ensure_future(c.network.attach(c.pod()))
    await waiting(c.plugins["two"])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert c.held() == set()


async def test_undoing_outlives_a_second_cancellation(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    go_on = tmp_path / "go-on"
    c.plugins["one"].tell({"command": "ADD", "do": "crash"}, {"command": "DEL", "do": "wait", "for": str(go_on)})
    task = asyncio.ensure_future(c.network.attach(c.pod()))
    await waiting(c.plugins["one"])
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.touch()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert c.held() == set()


async def test_one_plugins_failure_does_not_keep_the_others_things(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two", "three")
    attachment = c.pod()
    result = await c.network.attach(attachment)
    c.plugins["two"].tell({"command": "DEL", "call": 1, "do": "fail", "msg": "busy"})
    c.plugins["three"].path.unlink()
    with pytest.raises(HostFailure) as caught:
        await c.network.detach(attachment, result)
    assert "plugin three: not found" in str(caught.value)
    assert "plugin two (DEL): busy" in str(caught.value)
    assert c.plugins["one"].held() == set()
    with pytest.raises(HostFailure, match="three"):
        await c.network.detach(attachment, result)
    assert c.plugins["two"].held() == set()


async def test_deleting_again_and_again(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    attachment = c.pod()
    for _ in range(3):
        await c.network.detach(attachment, None)
    c.plugins["one"].tell({"command": "DEL", "do": "fail", "code": 3, "msg": "unknown container"})
    await c.network.detach(attachment, None)


async def test_a_missing_plugin_is_seen_before_anything_runs(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    attachment = c.pod()
    c.plugins["two"].path.unlink()
    with pytest.raises(HostFailure, match="network net: plugin two: not found in"):
        await c.network.attach(attachment)
    assert c.commands()["one"] == []


async def test_prepare(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    assert json.loads(c.pod().config)["name"] == "net"
    with pytest.raises(InvalidInput, match=r"port_mappings\[0\]"):
        c.pod(port_mappings=(PortMapping(container_port=0, host_port=80),))
    with pytest.raises(InvalidInput, match="ingress-bandwidth"):
        c.pod(annotations={"kubernetes.io/ingress-bandwidth": "fast"})
    (c.conf / "10.conflist").unlink()
    await c.network.reload()
    with pytest.raises(Unavailable, match="no valid network configuration"):
        c.pod()


async def test_an_attachment_that_was_not_prepared(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    attachment = Attachment(pod_id="p", name="n", namespace="s", uid="u", netns_path="/gone")
    with pytest.raises(FailedPrecondition):
        await c.network.attach(attachment)
    await c.network.detach(attachment, None)
    assert c.commands()["one"] == []


async def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    attachment = Attachment(pod_id="p", name="n", namespace="s", uid="u", netns_path="/gone", config="{")
    with pytest.raises(DataLoss, match="network of pod p: recorded configuration"):
        await c.network.detach(attachment, None)


async def test_check(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two")
    attachment = c.pod()
    result = await c.network.attach(attachment)
    await c.network.check(attachment, result)
    assert c.told("one", "CHECK")["prevResult"] == json.loads(result.raw)
    c.plugins["one"].tell({"command": "CHECK", "do": "fail", "msg": "address is gone"})
    with pytest.raises(HostFailure, match=r"network net: plugin one \(CHECK\): address is gone"):
        await c.network.check(attachment, result)


async def test_check_may_be_disabled(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", disableCheck=True)
    await c.network.check(c.pod(), NetworkResult(raw="{}"))
    assert c.commands()["one"] == []


async def test_collect_names_the_living(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", "two", cniVersion="1.1.0")
    living = [c.pod("p1"), c.pod("p2")]
    c.plugins["one"].tell({"command": "GC", "do": "fail", "msg": "cannot"})
    c.put(name="other", plugins=[{"type": "one"}])
    with pytest.raises(HostFailure, match=r"network net: plugin one \(GC\): cannot"):
        await c.network.collect(living)
    valid = [{"containerID": name, "ifname": "eth0"} for name in ("p1", "p2")]
    assert c.told("two", "GC")["cni.dev/valid-attachments"] == valid
    await c.network.reload()  # the network in use is another one now, at 1.0.0
    await c.network.collect(living)
    assert len(c.plugins["one"].calls("GC")) == 1


async def test_collect_leaves_other_networks_attachments_out(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", cniVersion="1.1.0", name="former")
    former = c.pod("p1")
    c.put(name="net", cniVersion="1.1.0", plugins=[{"type": "one"}])
    await c.network.reload()
    await c.network.collect(
        [
            former,
            c.pod("p2"),
            Attachment(pod_id="p3", name="n", namespace="s", uid="u", netns_path="/gone", config="unreadable"),
        ]
    )
    valid = [call["containerID"] for call in c.told("one", "GC")["cni.dev/valid-attachments"]]
    assert valid == ["p2", "p3"]


@pytest.mark.parametrize("keys", [{"cniVersion": "1.0.0"}, {"cniVersion": "1.1.0", "disableGC": True}])
async def test_no_collection_where_it_is_not_wanted(tmp_path: Path, keys: dict[str, Any]) -> None:
    c = await chain(tmp_path, "one", **keys)
    await c.network.collect([])
    assert c.plugins["one"].calls("GC") == []


async def test_collect_waits_for_a_moment_of_rest_and_spares_newcomers(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one", cniVersion="1.1.0")
    go_on = tmp_path / "go-on"
    c.plugins["one"].tell({"command": "ADD", "call": 1, "do": "wait", "for": str(go_on)})
    first = asyncio.ensure_future(c.network.attach(c.pod("p1")))
    await waiting(c.plugins["one"])
    collecting = asyncio.ensure_future(c.network.collect([]))
    await asyncio.sleep(0)
    await c.network.attach(c.pod("p2"))  # comes after `live` was counted, while GC waits
    assert c.plugins["one"].calls("GC") == []
    go_on.touch()
    await first
    await collecting
    valid = c.told("one", "GC")["cni.dev/valid-attachments"]
    assert valid == [{"containerID": "p2", "ifname": "eth0"}]


async def test_pods_are_served_in_parallel(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    go_on = tmp_path / "go-on"
    c.plugins["one"].tell({"command": "ADD", "call": 1, "do": "wait", "for": str(go_on)})
    slow = asyncio.ensure_future(c.network.attach(c.pod("slow")))
    await waiting(c.plugins["one"])
    await c.network.attach(c.pod("fast"))
    assert not slow.done()
    go_on.touch()
    await slow


async def test_the_pod_cidr_outlives_the_daemon(tmp_path: Path) -> None:
    c = await chain(tmp_path, "one")
    path = tmp_path / "pod-cidr"

    async def next_daemon() -> CniNetwork:
        c.network = CniNetwork(conf_dir=str(c.conf), bin_dirs=(str(c.bin),), pod_cidr_path=str(path))
        await c.network.reload()
        return c.network

    network = await next_daemon()
    assert c.pod().pod_cidr == ""
    await network.set_pod_cidr("10.1.0.0/24, fd00::1/64")
    await network.set_pod_cidr("")
    with pytest.raises(InvalidInput, match="pod_cidr"):
        await network.set_pod_cidr("nonsense")
    assert c.pod().pod_cidr == "10.1.0.0/24,fd00::/64"
    await next_daemon()
    assert c.pod().pod_cidr == "10.1.0.0/24,fd00::/64"
    path.write_bytes(b"\xff")
    await next_daemon()
    assert c.pod().pod_cidr == ""
