"""What every ports.network.Network does: the fake, and the real one (root) with Debian's plugins."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput, NotFound, Unavailable
from isulad_py.model.network import PortMapping, Protocol
from tests.contract.network_places import CniPlace, FakePlace, Place


@pytest.fixture(params=["fake", pytest.param("cni", marks=pytest.mark.root)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "fake":
        yield FakePlace()
        return
    made = CniPlace(tmp_path)
    try:
        await made.network.reload()
        yield made
    finally:
        await made.close()


def test_the_status_names_the_configuration(place: Place) -> None:
    status = place.network.status()
    assert (status.ready, status.reason, status.message) == (True, "", "")
    assert status.config_name
    assert status.config_path
    assert status.cni_version


async def test_without_a_configuration(place: Place) -> None:
    attached = place.network.prepare(place.pod())
    result = await place.network.attach(attached)
    await place.lose_config()
    status = place.network.status()
    assert (status.ready, status.reason) == (False, "NetworkPluginNotReady")
    assert "no valid network configuration" in status.message
    with pytest.raises(Unavailable, match="no valid network configuration"):
        place.network.prepare(place.pod())
    await place.network.detach(attached, result)
    assert place.held() == set()
    await place.restore_config()
    assert place.network.status().ready


async def test_attach_and_detach(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    assert attachment.config
    result = await place.network.attach(attachment)
    assert [ipaddress.ip_address(ip).version for ip in result.ips] == [4, 6]
    assert result.interface == "eth0"
    assert result.raw
    assert place.held() == {attachment.pod_id}
    await place.network.check(attachment, result)
    await place.network.detach(attachment, result)
    assert place.held() == set()


async def test_detach_is_idempotent(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    await place.network.detach(attachment, None)
    result = await place.network.attach(attachment)
    for _ in range(2):
        await place.network.detach(attachment, result)
    await place.network.detach(attachment, None)
    assert place.held() == set()


async def test_detach_without_a_result(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    await place.network.attach(attachment)
    await place.network.detach(attachment, None)
    assert place.held() == set()


@pytest.mark.parametrize("with_result", [True, False])
async def test_detach_when_the_namespace_is_gone(place: Place, with_result: bool) -> None:
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    place.lose_netns(attachment)
    await place.network.detach(attachment, result if with_result else None)
    assert place.held() == set()


async def test_attach_again_after_detach(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    for _ in range(2):
        await place.network.detach(attachment, await place.network.attach(attachment))
    assert place.held() == set()


async def test_pods_at_once_get_addresses_of_their_own(place: Place) -> None:
    attachments = [place.network.prepare(place.pod()) for _ in range(4)]
    results = await asyncio.gather(*(place.network.attach(attachment) for attachment in attachments))
    addresses = [ip for result in results for ip in result.ips]
    assert len(set(addresses)) == len(addresses) == 8
    assert place.held() == {attachment.pod_id for attachment in attachments}
    await asyncio.gather(*map(place.network.detach, attachments, results))
    assert place.held() == set()


async def test_an_attachment_must_be_prepared(place: Place) -> None:
    attachment = place.pod()
    with pytest.raises(FailedPrecondition):
        await place.network.attach(attachment)
    await place.network.detach(attachment, None)


async def test_what_cannot_be_told_to_a_plugin_is_refused_before_it_runs(place: Place) -> None:
    for mapping in (
        PortMapping(host_port=70000, container_port=1),
        PortMapping(host_port=1, container_port=1, host_ip="localhost"),
    ):
        with pytest.raises(InvalidInput, match=r"port_mappings\[0\]"):
            place.network.prepare(place.pod(port_mappings=(mapping,)))
    with pytest.raises(InvalidInput, match="egress-bandwidth"):
        place.network.prepare(place.pod(annotations={"kubernetes.io/egress-bandwidth": "a lot"}))
    with pytest.raises(InvalidInput, match="name"):
        place.network.prepare(place.pod(name="web;IP=10.0.0.1"))


async def test_host_ports(place: Place) -> None:
    mappings = (
        PortMapping(host_port=40001, container_port=80, host_ip="127.0.0.1"),
        PortMapping(host_port=40002, container_port=81, protocol=Protocol.SCTP),
        PortMapping(container_port=82),
    )
    attachment = place.network.prepare(place.pod(port_mappings=mappings))
    result = await place.network.attach(attachment)
    # No CHECK: that of Debian's portmap looks for the IPv4 rules of a host address in the IPv6 table.
    await place.network.detach(attachment, result)
    assert place.held() == set()


async def test_check_finds_what_is_broken(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    place.break_address(attachment)
    with pytest.raises(HostFailure):
        await place.network.check(attachment, result)
    await place.network.detach(attachment, result)


async def test_a_cancelled_attach_leaves_nothing(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    task = asyncio.ensure_future(place.network.attach(attachment))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await place.network.detach(attachment, None)  # had it been quicker than its cancellation
    assert place.held() == set()


async def test_collecting_spares_the_living(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    await place.network.collect([attachment])
    assert place.held() == {attachment.pod_id}
    await place.network.check(attachment, result)
    await place.network.detach(attachment, result)


async def test_pod_cidr(place: Place) -> None:
    await place.network.set_pod_cidr("")
    await place.network.set_pod_cidr("10.7.0.0/24,fd07::/64")
    await place.network.set_pod_cidr("")
    assert place.network.prepare(place.pod()).pod_cidr == "10.7.0.0/24,fd07::/64"
    for wrong in ("10.7.0.0", "10.7.0.0/40", "pods", "10.7.0.0/24,,"):
        with pytest.raises(InvalidInput, match="pod_cidr"):
            await place.network.set_pod_cidr(wrong)
    assert place.network.prepare(place.pod()).pod_cidr == "10.7.0.0/24,fd07::/64"


async def test_interfaces(place: Place) -> None:
    attachment = place.network.prepare(place.pod())
    result = await place.network.attach(attachment)
    samples = await place.network.interfaces(attachment.netns_path)
    assert [sample.name for sample in samples] == ["eth0", "lo"]
    await place.network.detach(attachment, result)
    place.lose_netns(attachment)
    with pytest.raises(NotFound):
        await place.network.interfaces(attachment.netns_path)


async def test_an_attachment_survives_its_record(place: Place) -> None:
    """DEL runs from what the record holds, with a daemon that knows nothing else."""
    attachment = place.network.prepare(place.pod(annotations={"a": "b"}))
    result = await place.network.attach(attachment)
    await place.network.detach(replace(attachment, annotations=dict(attachment.annotations)), replace(result))
    assert place.held() == set()
