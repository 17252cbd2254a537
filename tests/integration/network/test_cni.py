"""What a pod needs is done by Debian's CNI plugins: addresses, routes, ports, limits; and nothing is left."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from isulad_py.host import namespaces
from isulad_py.model.errors import HostFailure
from isulad_py.model.network import PortMapping
from tests.contract.network_places import CniPlace
from tests.faults.cni_plugin import FaultyPlugin, install
from tests.stand.mark import run

pytestmark = pytest.mark.root

Make = Callable[..., Any]
SECONDS = 10


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    places: list[CniPlace] = []

    async def made(**keys: Any) -> CniPlace:
        places.append(CniPlace(tmp_path, **keys))
        await places[-1].network.reload()
        assert places[-1].network.status().ready, places[-1].network.status()
        return places[-1]

    yield made
    for place in places:
        await place.close()


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyPlugin:
    (tmp_path / "bin").mkdir()
    return install(tmp_path / "bin", "faulty")


def inside(netns_path: str, *argv: str) -> Any:
    return json.loads(run(["nsenter", f"--net={netns_path}", "ip", "-json", *argv]))


def listen(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    server = socket.create_server(address, family=family)
    server.settimeout(SECONDS)
    return server


async def talk(server: socket.socket, connect: Callable[[], socket.socket]) -> str:
    """Connects, lets the client say something, and gives what the server heard."""

    def serve() -> str:
        with server, server.accept()[0] as peer:
            peer.settimeout(SECONDS)
            return peer.recv(100).decode()

    def call() -> None:
        with connect() as client:
            client.sendall(b"hello")

    heard, _ = await asyncio.gather(asyncio.to_thread(serve), asyncio.to_thread(call))
    return heard


async def test_addresses_and_routes(make: Make) -> None:
    place: CniPlace = await make()
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    first, second = map(ipaddress.ip_address, result.ips)
    assert first in ipaddress.ip_network(place.subnet)
    assert second in ipaddress.ip_network(place.subnet6)
    (link,) = inside(attachment.netns_path, "address", "show", "dev", "eth0")
    assert {address["local"] for address in link["addr_info"] if address["scope"] == "global"} == set(result.ips)
    routes = inside(attachment.netns_path, "route", "show", "default")
    assert [route["gateway"] for route in routes] == [place.gateway]
    assert len(place.links()) == 1
    await place.network.detach(attachment, result)
    assert place.links() == set()
    assert [link["ifname"] for link in inside(attachment.netns_path, "link", "show")] == ["lo"]


async def test_the_pod_reaches_its_bridge(make: Make) -> None:
    place: CniPlace = await make()
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    server = listen((place.gateway, 0))
    address = server.getsockname()

    def connect() -> socket.socket:
        return namespaces.call_in_netns(
            attachment.netns_path, lambda: socket.create_connection(address, timeout=SECONDS)
        )

    assert await talk(server, connect) == "hello"
    before = await place.network.interfaces(attachment.netns_path)
    assert before[0].tx_packets > 0
    assert before[0].rx_bytes > 0
    await place.network.detach(attachment, result)


async def test_a_host_port_leads_to_the_pod_and_is_taken_away(make: Make) -> None:
    place: CniPlace = await make()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        host_port = probe.getsockname()[1]
    mapping = PortMapping(host_port=host_port, container_port=8080, host_ip=place.gateway)
    attachment = place.network.prepare(place.pod(port_mappings=(mapping,)))
    result = await place.network.attach(attachment)
    assert any(f"--dports {host_port} " in rule for rule in place.rules(attachment))
    server = namespaces.call_in_netns(attachment.netns_path, lambda: listen(("0.0.0.0", 8080)))
    address = (place.gateway, host_port)
    assert await talk(server, lambda: socket.create_connection(address, timeout=SECONDS)) == "hello"
    await place.network.detach(attachment, result)
    assert place.rules(attachment) == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address, timeout=SECONDS)


async def test_host_ports_go_also_when_the_namespace_is_gone(make: Make) -> None:
    place: CniPlace = await make()
    mapping = PortMapping(host_port=40003, container_port=80, host_ip="127.0.0.1")
    attachment = place.network.prepare(place.pod(port_mappings=(mapping,)))
    result = await place.network.attach(attachment)
    place.lose_netns(attachment)
    await place.network.detach(attachment, result)
    assert place.rules(attachment) == []
    assert place.held() == set()


async def test_a_plain_file_where_the_namespace_was(make: Make) -> None:
    """As a reboot leaves it where the state directory is on a disk."""
    place: CniPlace = await make()
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    place.lose_netns(attachment)
    Path(attachment.netns_path).touch()
    await place.network.detach(attachment, result)
    assert place.held() == set()


async def test_bandwidth(make: Make) -> None:
    place: CniPlace = await make(plugins=({"type": "bandwidth", "capabilities": {"bandwidth": True}},))
    annotations = {"kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "5M"}
    attachment = place.network.prepare(place.pod(annotations=annotations))
    result = await place.network.attach(attachment)
    (veth,) = place.links()
    assert "rate 10Mbit" in run(["tc", "qdisc", "show", "dev", veth])
    await place.network.detach(attachment, result)
    assert place.links() == set()


async def test_an_address_of_ones_own_choice(make: Make) -> None:
    """By iSulad's annotation for CNI arguments; host-local takes IP."""
    place: CniPlace = await make()
    address = str(ipaddress.ip_network(place.subnet)[77])
    annotations = {"extension.network.kubernetes.io/cniargs/ip": f"IP={address}"}
    attachment = place.network.prepare(place.pod(annotations=annotations))
    result = await place.network.attach(attachment)
    assert result.ips[0] == address
    await place.network.detach(attachment, result)


async def test_pod_cidr_as_the_range(make: Make) -> None:
    place: CniPlace = await make()
    bridge = place.config["plugins"][0]
    bridge["capabilities"] = {"ipRanges": True}
    del bridge["ipam"]["ranges"]
    place.put()
    await place.network.reload()
    await place.network.set_pod_cidr(f"{place.subnet},{place.subnet6}")
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    assert ipaddress.ip_address(result.ips[0]) in ipaddress.ip_network(place.subnet)
    await place.network.set_pod_cidr("192.0.2.0/24")
    await place.network.detach(attachment, result)
    assert place.held() == set()


@pytest.mark.parametrize("do", ["crash", "die", "flood"])
async def test_a_chain_that_fails_behind_the_bridge(make: Make, tmp_path: Path, faulty: FaultyPlugin, do: str) -> None:
    place: CniPlace = await make(plugins=({"type": "faulty"},), bin_dirs=(str(tmp_path / "bin"),))
    faulty.tell({"command": "ADD", "do": do})
    mapping = PortMapping(host_port=40004, container_port=80, host_ip="127.0.0.1")
    attachment = place.network.prepare(place.pod(port_mappings=(mapping,)))
    with pytest.raises(HostFailure, match=r"plugin faulty \(ADD\)") as caught:
        await place.network.attach(attachment)
    assert caught.value.cleanup == []
    assert (place.held(), place.links(), place.rules(attachment)) == (set(), set(), [])
    assert [link["ifname"] for link in inside(attachment.netns_path, "link", "show")] == ["lo"]


async def test_a_chain_that_is_cancelled_behind_the_bridge(make: Make, tmp_path: Path, faulty: FaultyPlugin) -> None:
    place: CniPlace = await make(plugins=({"type": "faulty"},), bin_dirs=(str(tmp_path / "bin"),))
    faulty.tell({"command": "ADD", "do": "hang"})
    attachment = place.network.prepare(place.pod())
    task = asyncio.ensure_future(place.network.attach(attachment))
    async with asyncio.timeout(60):
        while not faulty.pids():
            await asyncio.sleep(0.01)
    assert place.held() == {attachment.pod_id}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (place.held(), place.links()) == (set(), set())


async def test_a_full_range_is_told_and_leaves_nothing(make: Make) -> None:
    place: CniPlace = await make()
    ipam = place.config["plugins"][0]["ipam"]
    small = next(ipaddress.IPv4Network(place.subnet).subnets(new_prefix=30))
    ipam["ranges"] = [[{"subnet": str(small)}]]
    place.put()
    await place.network.reload()
    first = place.network.prepare(place.pod())
    result = await place.network.attach(first)
    second = place.network.prepare(place.pod())
    with pytest.raises(HostFailure, match="no IP addresses available"):
        await place.network.attach(second)
    assert place.held() == {first.pod_id}
    await place.network.detach(first, result)


async def test_twenty_pods_at_once(make: Make) -> None:
    place: CniPlace = await make()
    attachments = [place.network.prepare(place.pod()) for _ in range(20)]
    results = await asyncio.gather(*map(place.network.attach, attachments))
    assert len({result.ips for result in results}) == 20
    assert len(place.links()) == 20
    await asyncio.gather(*map(place.network.detach, attachments, results))
    assert (place.held(), place.links()) == (set(), set())


async def test_a_newer_configuration_than_the_plugins_speak(make: Make) -> None:
    place: CniPlace = await make()
    place.config["cniVersion"] = "1.1.0"
    place.put()
    await place.network.reload()
    spoken = subprocess.run(
        ["/usr/lib/cni/bridge"], env={"CNI_COMMAND": "VERSION"}, input=b"{}", capture_output=True, check=True
    ).stdout
    if "1.1.0" in json.loads(spoken)["supportedVersions"]:
        pytest.skip("these plugins speak 1.1.0")
    status = place.network.status()
    assert not status.ready
    assert "plugin bridge: speaks" in status.message
    place.config["cniVersions"] = ["1.0.0"]
    place.put()
    await place.network.reload()
    assert place.network.status().cni_version == "1.0.0"
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(replace(attachment))
    await place.network.detach(attachment, result)
