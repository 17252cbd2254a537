"""Lifecycle events (CRI GetContainerEvents)."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.events import LifecycleEvent
from isulad_py.wire.translate import containers, pods, presence


def event_message(event: LifecycleEvent) -> cri.ContainerEventResponse:
    """An evented kubelet builds the pod's status from this message alone."""
    return cri.ContainerEventResponse(
        container_id=event.subject_id,
        container_event_type=cri.ContainerEventType(event.kind),
        created_at=event.at,
        pod_sandbox_status=presence.or_absent(pods.pod_status(event.pod) if event.pod is not None else None),
        containers_statuses=containers.container_statuses(event.containers),
    )
