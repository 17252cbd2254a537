"""A pod network in memory. It passes tests/contract/test_network.py."""

from __future__ import annotations

import json
from collections.abc import Collection

from msgspec.structs import replace

from isulad_py.model.errors import FailedPrecondition, HostFailure, NotFound, Unavailable
from isulad_py.model.network import Attachment, NetworkResult, NetworkStatus
from isulad_py.model.stats import InterfaceSample
from isulad_py.network import arguments
from tests.fakes.faults import Faults


class FakeNetwork:
    """Implements ports.network.Network: dual stack, from 10.99.0.0/16 and fd99::/64. `attached` is what is held, by pod
    id. `unready` is the reason why there is no configuration; `lost` are namespaces (paths) that are gone, `broken`
    pods whose address is. `valid` is what each GC was told, by pod id. Faults: attach (half-way: what it holds then is
    given back), detach, check, collect, interfaces."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.attached: dict[str, NetworkResult] = {}
        self.unready = ""
        self.lost: set[str] = set()
        self.broken: set[str] = set()
        self.valid: list[set[str]] = []
        self._pod_cidr = ""
        self._next = 2

    def status(self) -> NetworkStatus:
        if self.unready:
            return NetworkStatus(ready=False, reason="NetworkPluginNotReady", message=self.unready)
        return NetworkStatus(ready=True, config_name="fake", config_path="/fake/net.d/10.conflist", cni_version="1.1.0")

    def prepare(self, attachment: Attachment) -> Attachment:
        if self.unready:
            raise Unavailable(f"network: {self.unready}")
        prepared = replace(attachment, config=json.dumps({"name": "fake"}), pod_cidr=self._pod_cidr)
        arguments.cni_args(prepared)
        arguments.capability_args(prepared)
        return prepared

    async def attach(self, attachment: Attachment) -> NetworkResult:
        if not attachment.config:
            raise FailedPrecondition(f"network of pod {attachment.pod_id}: not prepared")
        if attachment.pod_id in self.attached:
            raise HostFailure(f"pod {attachment.pod_id} is attached already")
        number, self._next = self._next, self._next + 1
        result = NetworkResult(
            ips=(f"10.99.{number // 256}.{number % 256}", f"fd99::{number:x}"),
            interface="eth0",
            raw=json.dumps({"cniVersion": "1.1.0", "pod": attachment.pod_id}),
        )
        self.attached[attachment.pod_id] = result
        try:
            await self.faults.at("attach")
        except BaseException:
            self.attached.pop(attachment.pod_id, None)
            raise
        return result

    async def detach(self, attachment: Attachment, result: NetworkResult | None) -> None:
        await self.faults.at("detach")
        self.attached.pop(attachment.pod_id, None)
        self.broken.discard(attachment.pod_id)

    async def check(self, attachment: Attachment, result: NetworkResult) -> None:
        await self.faults.at("check")
        if attachment.pod_id in self.broken or attachment.pod_id not in self.attached:
            raise HostFailure(f"pod {attachment.pod_id} has no address")

    async def collect(self, live: Collection[Attachment]) -> None:
        await self.faults.at("collect")
        valid = {attachment.pod_id for attachment in live}
        self.valid.append(valid)
        for pod_id in self.attached.keys() - valid:
            del self.attached[pod_id]

    async def set_pod_cidr(self, cidr: str) -> None:
        self._pod_cidr = ",".join(arguments.subnets(cidr)) or self._pod_cidr

    async def interfaces(self, netns_path: str) -> tuple[InterfaceSample, ...]:
        await self.faults.at("interfaces")
        if netns_path in self.lost:
            raise NotFound(f"network namespace {netns_path} is gone")
        own = InterfaceSample(name="eth0", rx_bytes=1000, rx_packets=10, tx_bytes=500, tx_packets=5)
        return (own, InterfaceSample(name="lo"))
