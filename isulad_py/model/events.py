"""What happened to pods and containers (CRI ContainerEventType)."""

from __future__ import annotations

import enum

from msgspec import Struct

from isulad_py.model.container import ContainerRecord
from isulad_py.model.pod import PodRecord


class EventKind(enum.IntEnum):
    CREATED = 0
    STARTED = 1
    STOPPED = 2
    DELETED = 3


class LifecycleEvent(Struct, frozen=True, kw_only=True):
    """`subject_id` is a container's id, or the pod's for the sandbox itself.

    The pod and all its containers as they were at that moment travel along: an evented kubelet builds the pod's
    status from the event alone.
    """

    kind: EventKind
    subject_id: str
    at: int
    pod: PodRecord | None
    containers: tuple[ContainerRecord, ...] = ()
