from __future__ import annotations

import json

from isulad_py.model.errors import HostFailure
from isulad_py.model.network import NetworkStatus
from isulad_py.ports.runtime import HandlerFeatures
from tests.unit.engine.node import Node, World


async def test_all_is_well(node: Node) -> None:
    status = await node.services.readiness.status()
    assert status.runtime_ready.status
    assert status.network_ready.status
    assert [handler.name for handler in status.handlers] == ["runc", ""]


async def test_each_condition_has_its_reason(world: World) -> None:
    async def broken(handler: str) -> HandlerFeatures:
        raise HostFailure(f"{handler}: no such program")

    world.runtime.features = broken  # type: ignore[method-assign]
    world.network.status = lambda: NetworkStatus(ready=False, reason="NoConfig", message="no file")  # type: ignore[method-assign]
    async with world.daemon() as node:
        status = await node.services.readiness.status()
    assert not status.runtime_ready.status
    assert "no such program" in status.runtime_ready.message
    assert (status.network_ready.reason, status.network_ready.message) == ("NoConfig", "no file")


async def test_a_runtime_that_is_gone_is_told(node: Node, world: World) -> None:
    assert (await node.services.readiness.status()).runtime_ready.status

    async def gone(handler: str) -> HandlerFeatures:
        raise HostFailure(f"runtime {handler}: no such program")

    world.runtime.features = gone  # type: ignore[method-assign]
    assert not (await node.services.readiness.status()).runtime_ready.status


async def test_a_monitor_that_is_gone_is_told(node: Node, world: World) -> None:
    world.runtime.monitor_reason = "monitor: no such program: conmon"
    ready = (await node.services.readiness.status()).runtime_ready
    assert (ready.status, ready.reason) == (False, "MonitorUnusable")
    assert ready.message == "monitor: no such program: conmon"
    world.runtime.monitor_reason = ""
    assert (await node.services.readiness.status()).runtime_ready.status


async def test_verbose_information_is_json(node: Node) -> None:
    info = await node.services.readiness.info()
    assert json.loads(info["config"])["default-runtime"] == "runc"
    assert json.loads(info["cni"])["ready"] is True
    assert "kernel" in json.loads(info["versions"])
    assert json.loads(info["counts"]) == {"pods": 0, "containers": 0}
