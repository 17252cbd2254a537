from __future__ import annotations

import asyncio
import json

import pytest

from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.container import ContainerState
from isulad_py.model.errors import NotFound
from isulad_py.model.pod import PodState
from tests.unit.engine.node import Node, World


async def test_filters(node: Node) -> None:
    queries = node.services.queries
    web = await node.run_pod("web", labels={"app": "web", "tier": "front"})
    db = await node.run_pod("db", labels={"app": "db"})
    server = await node.run_container(web, name="server", labels={"c": "1"})
    waiting = await node.create(db, name="waiting")
    await node.services.pods.stop(db)
    ids = lambda records: {record.id for record in records}  # noqa: E731
    assert ids(queries.pods(PodFilter())) == {web, db}
    assert ids(queries.pods(PodFilter(id=web[:8]))) == {web}
    assert ids(queries.pods(PodFilter(state=PodState.READY))) == {web}
    assert ids(queries.pods(PodFilter(state=PodState.NOTREADY))) == {db}
    assert ids(queries.pods(PodFilter(labels={"app": "web"}))) == {web}
    assert ids(queries.pods(PodFilter(labels={"app": "web", "tier": "back"}))) == set()
    assert ids(queries.containers(ContainerFilter())) == {server, waiting}
    assert ids(queries.containers(ContainerFilter(state=ContainerState.RUNNING))) == {server}
    assert ids(queries.containers(ContainerFilter(state=ContainerState.EXITED))) == {waiting}
    assert ids(queries.containers(ContainerFilter(pod_id=db[:9]))) == {waiting}
    assert ids(queries.containers(ContainerFilter(labels={"c": "1"}))) == {server}
    assert ids(queries.containers_of(web)) == {server}


async def test_what_is_being_made_is_not_shown(node: Node, world: World) -> None:
    gate = world.network.faults.hold("attach")
    running = asyncio.get_running_loop().create_task(node.run_pod())
    await world.network.faults.wait_entered("attach")
    [pod_id] = node.services.registry.pods
    assert node.services.queries.pods(PodFilter()) == []
    with pytest.raises(NotFound):
        node.services.queries.pod(pod_id)
    gate.set()
    await running
    gate = world.runtime.faults.hold("create")
    creating = asyncio.get_running_loop().create_task(node.create(pod_id))
    await world.runtime.faults.wait_entered("create")
    [container_id] = node.services.registry.containers
    assert node.services.queries.containers(ContainerFilter()) == []
    with pytest.raises(NotFound):
        node.services.queries.container(container_id)
    gate.set()
    await creating


async def test_verbose_information(node: Node) -> None:
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    told = json.loads((await node.services.queries.container_info(container_id))["info"])
    assert told["pid"] == node.services.queries.container(container_id).processes.pid
    assert told["runtimeSpec"]["process"]["args"] == ["server"]
    told = json.loads((await node.services.queries.pod_info(pod_id))["info"])
    assert told["environment"]["netns_path"]
    assert told["cniResult"]
