from __future__ import annotations

import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.queries import ContainerFilter, PodFilter
from isulad_py.model.container import ContainerState
from isulad_py.model.errors import InvalidInput
from isulad_py.model.pod import PodState
from isulad_py.wire.translate import filters


def test_filters_of_pods(codec: str) -> None:
    message = cri.PodSandboxFilter(id="p", state=cri.PodSandboxStateValue(state=1), label_selector={"a": "b"})
    found = filters.pod_filter(cri.PodSandboxFilter().parse(bytes(message)))
    assert found == PodFilter(id="p", state=PodState.NOTREADY, labels={"a": "b"})


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (0, ContainerState.CREATED),
        (1, ContainerState.RUNNING),
        (2, ContainerState.EXITED),
        (3, ContainerState.UNKNOWN),
    ],
)
def test_filters_of_containers(codec: str, number: int, state: ContainerState) -> None:
    message = cri.ContainerFilter(
        id="c", state=cri.ContainerStateValue(state=number), pod_sandbox_id="p", label_selector={"a": "b"}
    )
    found = filters.container_filter(cri.ContainerFilter().parse(bytes(message)))
    assert found == ContainerFilter(id="c", state=state, pod_id="p", labels={"a": "b"})


def test_states_that_there_are_not() -> None:
    with pytest.raises(InvalidInput, match=r"^filter\.state\.state: 2 is not a value of PodSandboxState"):
        filters.pod_filter(cri.PodSandboxFilter(state=cri.PodSandboxStateValue(state=2)))
    with pytest.raises(InvalidInput, match=r"^filter\.state\.state: -1 is not a value of ContainerState"):
        filters.container_filter(cri.ContainerFilter(state=cri.ContainerStateValue(state=-1)))


def test_filters_of_stats() -> None:
    containers = cri.ContainerStatsFilter(id="c", pod_sandbox_id="p", label_selector={"a": "b"})
    assert filters.container_stats_filter(containers) == ContainerFilter(id="c", pod_id="p", labels={"a": "b"})
    pods = cri.PodSandboxStatsFilter(id="p", label_selector={"a": "b"})
    assert filters.pod_stats_filter(pods) == PodFilter(id="p", labels={"a": "b"})
