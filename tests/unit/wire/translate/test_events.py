from __future__ import annotations

import betterproto

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord
from isulad_py.model.events import EventKind, LifecycleEvent
from isulad_py.model.ids import ContainerId, PodId
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord
from isulad_py.wire.translate import events

POD = PodRecord(id=PodId("p1"), config=PodConfig(metadata=PodMetadata(name="p")), ready_at=1)


def _container(name: str) -> ContainerRecord:
    config = ContainerConfig(metadata=ContainerMetadata(name=name))
    return ContainerRecord(id=ContainerId(name), pod_id=POD.id, config=config, created_at=1)


def test_an_event_carries_the_pod_and_all_its_containers(codec: str) -> None:
    event = LifecycleEvent(
        kind=EventKind.STOPPED, subject_id="a", at=7, pod=POD, containers=(_container("a"), _container("b"))
    )
    message = cri.ContainerEventResponse().parse(bytes(events.event_message(event)))
    assert (message.container_id, message.created_at) == ("a", 7)
    assert message.container_event_type == cri.ContainerEventType.CONTAINER_STOPPED_EVENT
    assert message.pod_sandbox_status.metadata.name == "p"
    assert [status.id for status in message.containers_statuses] == ["a", "b"]


def test_the_kinds_have_cris_numbers() -> None:
    assert {kind.value: f"CONTAINER_{kind.name}_EVENT" for kind in EventKind} == {
        member.value: member.name for member in cri.ContainerEventType
    }


def test_the_event_of_a_pod_that_is_gone(codec: str) -> None:
    event = LifecycleEvent(kind=EventKind.DELETED, subject_id="p1", at=7, pod=None)
    message = cri.ContainerEventResponse().parse(bytes(events.event_message(event)))
    assert not betterproto.serialized_on_wire(message.pod_sandbox_status)
