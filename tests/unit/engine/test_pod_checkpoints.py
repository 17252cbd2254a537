"""Checkpoints of whole pods, and pods that begin where one ended."""

from __future__ import annotations

import msgspec
import pytest

from isulad_py.model.container import ContainerState
from isulad_py.model.errors import FailedPrecondition, HostFailure, InvalidInput, NotFound, Unsupported
from isulad_py.model.ids import PodId
from tests.unit.engine.node import Node, World, container_config, pod_config

FOLDER = "/backup"


async def two_containers(node: Node) -> PodId:
    pod_id = await node.run_pod("origin")
    await node.run_container(pod_id, name="one")
    await node.run_container(pod_id, name="two")
    await node.create(pod_id, name="waiting")
    return pod_id


async def test_every_running_container_becomes_an_archive(node: Node, world: World) -> None:
    pod_id = await two_containers(node)
    await node.services.pod_checkpoints.checkpoint(pod_id, FOLDER, [], {})
    assert set(world.checkpoints.archives) == {"/backup/one.tar", "/backup/two.tar"}
    listed = msgspec.json.decode(world.checkpoints.documents["/backup/pod.options"])
    assert listed["version"] == 1
    assert set(listed["containers"]) == {"one", "two"}
    about = msgspec.json.decode(world.checkpoints.documents["/backup/pod.dump"])
    assert about["metadata"]["name"] == "origin"


async def test_only_those_that_are_named(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    await node.run_container(pod_id, name="one")
    two = await node.run_container(pod_id, name="two")
    await node.services.pod_checkpoints.checkpoint(pod_id, "/backup/", [two[:12]], {})
    assert set(world.checkpoints.archives) == {"/backup/two.tar"}


async def test_what_is_wrong_with_the_request_comes_first(node: Node, world: World) -> None:
    pods = node.services.pod_checkpoints
    pod_id, other = await node.run_pod("one"), await node.run_pod("two")
    waiting = await node.create(pod_id)
    with pytest.raises(NotFound):
        await pods.checkpoint("unknown", FOLDER, [], {})
    with pytest.raises(InvalidInput, match=r"container_ids\[0\]"):
        await pods.checkpoint(other, FOLDER, [waiting], {})
    with pytest.raises(FailedPrecondition, match=r"container_ids\[0\].* is created"):
        await pods.checkpoint(pod_id, FOLDER, [waiting], {})
    with pytest.raises(Unsupported, match="no option 'stop'"):
        await pods.checkpoint(pod_id, FOLDER, [], {"stop": "true"})
    with pytest.raises(FailedPrecondition, match="no running container"):
        await pods.checkpoint(pod_id, FOLDER, [], {})
    await node.run_container(other, name="a/b")
    with pytest.raises(FailedPrecondition, match="'a/b' cannot name"):
        await pods.checkpoint(other, FOLDER, [], {})
    await node.services.pods.stop(other)
    with pytest.raises(FailedPrecondition, match="not ready"):
        await pods.checkpoint(other, FOLDER, [], {})
    assert not world.checkpoints.archives


async def test_without_criu(node: Node, world: World) -> None:
    pod_id = await two_containers(node)
    world.checkpointer.reason = "no CRIU here"
    with pytest.raises(FailedPrecondition, match="CheckpointPod: no CRIU here"):
        await node.services.pod_checkpoints.checkpoint(pod_id, FOLDER, [], {})
    with pytest.raises(FailedPrecondition, match="RestorePod: no CRIU here"):
        await node.services.pod_checkpoints.restore(FOLDER, pod_config(), "", [], {})
    with pytest.raises(InvalidInput, match="nobody"):
        await node.services.pod_checkpoints.restore(FOLDER, pod_config(), "nobody", [], {})


async def test_a_checkpoint_that_fails_leaves_no_archive(node: Node, world: World) -> None:
    pod_id = await two_containers(node)
    world.checkpoints.documents["/backup/pod.options"] = b"another's"
    with pytest.raises(Exception, match=r"pod\.options exists"):
        await node.services.pod_checkpoints.checkpoint(pod_id, FOLDER, [], {})
    assert not world.checkpoints.archives
    assert world.checkpoints.documents == {"/backup/pod.options": b"another's"}


async def test_a_pod_is_restored_with_all_its_containers(node: Node, world: World) -> None:
    pods = node.services.pod_checkpoints
    await pods.checkpoint(await two_containers(node), FOLDER, [], {})
    configs = [container_config(name="two"), container_config(name="one")]
    restored = await pods.restore(FOLDER, pod_config("again"), "", configs, {})
    assert {name for name, _ in restored.containers} == {"one", "two"}
    for name, container_id in restored.containers:
        record = node.services.queries.container(container_id)
        assert record.state is ContainerState.RUNNING
        assert (record.pod_id, record.config.metadata.name) == (restored.id, name)
        assert record.restored_from == f"/backup/{name}.tar"


async def test_a_restore_that_fails_leaves_no_pod(node: Node, world: World) -> None:
    pods = node.services.pod_checkpoints
    await pods.checkpoint(await two_containers(node), FOLDER, [], {})
    before = world.traces()
    configs = [container_config(name="one"), container_config(name="two")]
    world.runtime.faults.fail_once("create", HostFailure("criu"))
    with pytest.raises(HostFailure, match="criu"):
        await pods.restore(FOLDER, pod_config("again"), "", configs, {})
    assert world.traces() == before


async def test_what_a_restore_needs(node: Node, world: World) -> None:
    pods = node.services.pod_checkpoints
    await pods.checkpoint(await two_containers(node), FOLDER, [], {})
    one, two = container_config(name="one"), container_config(name="two")
    with pytest.raises(InvalidInput, match="container_configs: none for container two"):
        await pods.restore(FOLDER, pod_config(), "", [one], {})
    with pytest.raises(InvalidInput, match="config: must be given"):
        await pods.restore(FOLDER, None, "", [one, two], {})
    with pytest.raises(InvalidInput, match="no such file"):
        await pods.restore("/nowhere", pod_config(), "", [one, two], {})
    for document in (b"[]", b"{}", b'{"containers":{}}', b'{"containers":{"../x":""}}'):
        world.checkpoints.documents["/backup/pod.options"] = document
        with pytest.raises(InvalidInput, match="checkpoint_path"):
            await pods.restore(FOLDER, pod_config(), "", [one, two], {})


async def test_options_of_a_restore(node: Node) -> None:
    with pytest.raises(Unsupported, match="no option 'tcp-close'"):
        await node.services.pod_checkpoints.restore(FOLDER, pod_config(), "", [], {"tcp-close": "true"})
