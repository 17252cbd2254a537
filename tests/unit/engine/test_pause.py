from __future__ import annotations

import json

import pytest

from isulad_py.model.errors import HostFailure, NotFound
from isulad_py.model.ids import ContainerId
from isulad_py.model.security import NamespaceMode
from tests.unit.engine.node import Node, World


async def test_its_image_is_pulled_where_it_is_missing_and_stays_pinned(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    image = node.services.images.status("registry.k8s.io/pause:3.10")
    assert image is not None
    assert image.pinned
    spec = json.loads(world.runtime.containers[ContainerId(pod_id)].launch.spec)
    assert {"type": "pid"} in spec["linux"]["namespaces"]


async def test_without_its_image_the_pod_is_not_made(node: Node, world: World) -> None:
    world.source.withdraw("registry.k8s.io/pause:3.10")
    with pytest.raises(NotFound):
        await node.run_pod(pid=NamespaceMode.POD)
    assert not any(world.traces().values())


async def test_a_pause_container_that_does_not_start_is_removed(node: Node, world: World) -> None:
    world.runtime.faults.fail_once("start", HostFailure("no"))
    with pytest.raises(HostFailure):
        await node.run_pod(pid=NamespaceMode.POD)
    assert not any(world.traces().values())
