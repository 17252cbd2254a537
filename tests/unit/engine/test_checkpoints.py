from __future__ import annotations

import pytest

from isulad_py.model.errors import FailedPrecondition, InvalidInput, NotFound, Unsupported
from tests.unit.engine.node import Node, World


async def test_a_checkpoint_is_refused_with_the_reason(node: Node, world: World) -> None:
    checkpoints = node.services.checkpoints
    pod_id = await node.run_pod()
    container_id = await node.run_container(pod_id)
    with pytest.raises(FailedPrecondition, match="CheckpointContainer: no CRIU here"):
        await checkpoints.container(container_id[:12])
    with pytest.raises(FailedPrecondition, match="CheckpointPod: no CRIU here"):
        await checkpoints.pod(pod_id, [container_id])
    with pytest.raises(FailedPrecondition, match="RestorePod: no CRIU here"):
        await checkpoints.restore("")
    world.runtime.checkpoint_reason = ""
    with pytest.raises(Unsupported, match="CheckpointContainer is not implemented"):
        await checkpoints.container(container_id)


async def test_what_is_wrong_with_the_request_comes_first(node: Node) -> None:
    checkpoints = node.services.checkpoints
    pod_id, other = await node.run_pod("one"), await node.run_pod("two")
    waiting = await node.create(pod_id)
    with pytest.raises(NotFound):
        await checkpoints.container("unknown")
    with pytest.raises(FailedPrecondition, match="is created, not running"):
        await checkpoints.container(waiting)
    with pytest.raises(NotFound):
        await checkpoints.pod("unknown", [])
    with pytest.raises(InvalidInput, match=r"container_ids\[0\]"):
        await checkpoints.pod(other, [waiting])
    await node.services.pods.stop(other)
    with pytest.raises(FailedPrecondition, match="not ready"):
        await checkpoints.pod(other, [])
    with pytest.raises(InvalidInput, match="nobody"):
        await checkpoints.restore("nobody")
