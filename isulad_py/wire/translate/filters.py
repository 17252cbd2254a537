"""Filters of list calls. An absent filter and an empty one both match everything."""

from __future__ import annotations

from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.container import ContainerState
from isulad_py.model.pod import PodState
from isulad_py.wire.translate import checks, presence

_POD_STATES: Final[dict[int, PodState]] = {
    cri.PodSandboxState.SANDBOX_READY: PodState.READY,
    cri.PodSandboxState.SANDBOX_NOTREADY: PodState.NOTREADY,
}
_CONTAINER_STATES: Final[dict[int, ContainerState]] = {
    cri.ContainerState.CONTAINER_CREATED: ContainerState.CREATED,
    cri.ContainerState.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.ContainerState.CONTAINER_EXITED: ContainerState.EXITED,
    cri.ContainerState.CONTAINER_UNKNOWN: ContainerState.UNKNOWN,
}


def pod_filter(message: cri.PodSandboxFilter) -> PodFilter:
    state = None
    if presence.given(message.state):
        state = _POD_STATES[checks.member(cri.PodSandboxState, message.state.state, "filter.state.state")]
    return PodFilter(id=message.id, state=state, labels=message.label_selector)


def container_filter(message: cri.ContainerFilter) -> ContainerFilter:
    state = None
    if presence.given(message.state):
        state = _CONTAINER_STATES[checks.member(cri.ContainerState, message.state.state, "filter.state.state")]
    return ContainerFilter(id=message.id, state=state, pod_id=message.pod_sandbox_id, labels=message.label_selector)


def container_stats_filter(message: cri.ContainerStatsFilter) -> ContainerFilter:
    return ContainerFilter(id=message.id, pod_id=message.pod_sandbox_id, labels=message.label_selector)


def pod_stats_filter(message: cri.PodSandboxStatsFilter) -> PodFilter:
    return PodFilter(id=message.id, labels=message.label_selector)
