"""Which moves are legal. The tables are data: the tests walk all pairs, the docs' diagram is made from them."""

from __future__ import annotations

from isulad_py.model.container import ContainerState
from isulad_py.model.errors import FailedPrecondition
from isulad_py.model.pod import PodState

CONTAINER_MOVES: dict[ContainerState, frozenset[ContainerState]] = {
    ContainerState.CREATING: frozenset({ContainerState.CREATED, ContainerState.REMOVING}),
    ContainerState.CREATED: frozenset({ContainerState.RUNNING, ContainerState.EXITED, ContainerState.REMOVING}),
    ContainerState.RUNNING: frozenset({ContainerState.EXITED, ContainerState.PAUSED, ContainerState.UNKNOWN}),
    ContainerState.PAUSED: frozenset({ContainerState.RUNNING, ContainerState.EXITED, ContainerState.UNKNOWN}),
    ContainerState.UNKNOWN: frozenset({ContainerState.EXITED, ContainerState.RUNNING, ContainerState.REMOVING}),
    ContainerState.EXITED: frozenset({ContainerState.REMOVING}),
    ContainerState.REMOVING: frozenset(),
}

POD_MOVES: dict[PodState, frozenset[PodState]] = {
    PodState.CREATING: frozenset({PodState.READY, PodState.NOTREADY, PodState.REMOVING}),
    PodState.READY: frozenset({PodState.NOTREADY}),
    PodState.NOTREADY: frozenset({PodState.REMOVING}),
    PodState.REMOVING: frozenset(),
}


def can_start(state: ContainerState) -> bool:
    return ContainerState.RUNNING in CONTAINER_MOVES[state] and state is ContainerState.CREATED


def can_stop(state: ContainerState) -> bool:
    """Whether there is anything to stop; stopping what is not running is success (CRI, StopContainer)."""
    return state in {ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.UNKNOWN}


def can_exec(state: ContainerState) -> bool:
    return state is ContainerState.RUNNING


def can_update(state: ContainerState) -> bool:
    """CRI, UpdateContainerResources: created or running."""
    return state in {ContainerState.CREATED, ContainerState.RUNNING, ContainerState.PAUSED}


def check_container_move(old: ContainerState, new: ContainerState) -> None:
    """Raises FailedPrecondition, and changes nothing, where the move is not in the table."""
    if new not in CONTAINER_MOVES[old]:
        raise FailedPrecondition(f"a container that is {old.value} cannot become {new.value}")


def check_pod_move(old: PodState, new: PodState) -> None:
    """Raises FailedPrecondition, and changes nothing, where the move is not in the table."""
    if new not in POD_MOVES[old]:
        raise FailedPrecondition(f"a pod that is {old.value} cannot become {new.value}")
