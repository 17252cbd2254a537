from __future__ import annotations

import pytest

from isulad_py.engine.events import MOST_SUBSCRIBERS, QUEUE_LENGTH
from isulad_py.model.errors import HostFailure, ResourceExhausted
from isulad_py.model.events import EventKind
from isulad_py.model.pod import PodState
from isulad_py.model.security import NamespaceMode
from tests.unit.engine.node import Node, World


async def test_a_life_is_told_in_order_with_the_whole_pod_each_time(node: Node) -> None:
    with node.services.events.subscribe() as events:
        pod_id = await node.run_pod()
        container_id = await node.run_container(pod_id, "true")
        await node.until_exited(container_id)
        await node.services.containers.remove(container_id)
        await node.services.pods.remove(pod_id)
        seen = [await anext(events) for _ in range(8)]
    kinds = [EventKind.CREATED, EventKind.STARTED, EventKind.STOPPED, EventKind.DELETED]
    assert [event.kind for event in seen if event.subject_id == container_id] == kinds
    assert [event.kind for event in seen if event.subject_id == pod_id] == kinds
    assert [event.at for event in seen] == sorted(event.at for event in seen)
    # The last one too: by the sandbox in it a kubelet forgets the pod.
    for event in seen:
        assert event.pod is not None
        assert event.pod.id == pod_id
    assert seen[-1].containers == ()
    with_container = [event for event in seen if event.subject_id == container_id and event.kind != EventKind.DELETED]
    assert all(event.containers[0].id == container_id for event in with_container)


async def test_a_pod_that_ended_by_itself_is_told_stopped_once(node: Node, world: World) -> None:
    pod_id = await node.run_pod(pid=NamespaceMode.POD)
    with node.services.events.subscribe() as events:
        world.runtime.end(pod_id, 0)
        told = await anext(events)
        assert (told.kind, told.subject_id) == (EventKind.STOPPED, pod_id)
        assert told.pod is not None
        assert told.pod.state is PodState.NOTREADY
        await node.services.pods.stop(pod_id)
        await node.services.pods.remove(pod_id)
        assert (await anext(events)).kind is EventKind.DELETED


async def test_a_stop_that_succeeds_at_the_second_attempt_is_told(node: Node, world: World) -> None:
    pod_id = await node.run_pod()
    with node.services.events.subscribe() as events:
        world.network.faults.fail_once("detach", HostFailure("plugin failed"))
        with pytest.raises(HostFailure):
            await node.services.pods.stop(pod_id)
        await node.services.pods.stop(pod_id)
        assert (await anext(events)).kind is EventKind.STOPPED


async def test_a_slow_subscriber_is_cut_off_and_holds_back_nobody(node: Node) -> None:
    pod_id = await node.run_pod()
    announce = node.services.events.announce
    with node.services.events.subscribe() as slow, node.services.events.subscribe() as quick:
        for _ in range(QUEUE_LENGTH + 5):
            announce(EventKind.STARTED, pod_id, pod_id)
            await anext(quick)
        for _ in range(QUEUE_LENGTH):
            await anext(slow)
        with pytest.raises(ResourceExhausted, match="too slowly"):
            await anext(slow)


async def test_nothing_is_told_behind_a_gap(node: Node) -> None:
    pod_id = await node.run_pod()
    announce = node.services.events.announce
    with node.services.events.subscribe() as slow:
        for _ in range(QUEUE_LENGTH + 1):
            announce(EventKind.STARTED, pod_id, pod_id)
        for _ in range(QUEUE_LENGTH):  # it never catches up
            await anext(slow)
            announce(EventKind.STOPPED, pod_id, pod_id)
        with pytest.raises(ResourceExhausted, match="too slowly"):
            await anext(slow)


async def test_subscribers_are_bounded(node: Node) -> None:
    open_ones = [node.services.events.subscribe() for _ in range(MOST_SUBSCRIBERS)]
    for one in open_ones:
        one.__enter__()
    with pytest.raises(ResourceExhausted), node.services.events.subscribe():
        pass
    for one in open_ones:
        one.__exit__(None, None, None)
    with node.services.events.subscribe():
        pass
