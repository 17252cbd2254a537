"""The tables over all pairs, and the questions asked of them."""

from __future__ import annotations

import itertools

import pytest

from isulad_py.model import lifecycle
from isulad_py.model.container import ContainerState as C
from isulad_py.model.errors import FailedPrecondition
from isulad_py.model.lifecycle import CONTAINER_MOVES, POD_MOVES, check_container_move, check_pod_move
from isulad_py.model.pod import PodState as P


def test_every_state_has_its_moves() -> None:
    assert set(CONTAINER_MOVES) == set(C)
    assert set(POD_MOVES) == set(P)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(C, C)))
def test_containers_move_as_the_table_says(old: C, new: C) -> None:
    if new in CONTAINER_MOVES[old]:
        check_container_move(old, new)
    else:
        with pytest.raises(FailedPrecondition, match=f"{old.value} cannot become {new.value}"):
            check_container_move(old, new)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(P, P)))
def test_pods_move_as_the_table_says(old: P, new: P) -> None:
    if new in POD_MOVES[old]:
        check_pod_move(old, new)
    else:
        with pytest.raises(FailedPrecondition, match=f"{old.value} cannot become {new.value}"):
            check_pod_move(old, new)


@pytest.mark.parametrize("moves", [CONTAINER_MOVES, POD_MOVES], ids=["containers", "pods"])
def test_every_state_leads_to_the_end(moves: dict[C | P, frozenset[C | P]]) -> None:
    """Nothing can get stuck where it cannot be removed."""
    ending = {state for state, targets in moves.items() if not targets}
    while more := {state for state, targets in moves.items() if targets & ending} - ending:
        ending |= more
    assert ending == set(moves)


def test_an_exited_container_never_runs_again() -> None:
    assert CONTAINER_MOVES[C.EXITED] == {C.REMOVING}


@pytest.mark.parametrize(
    ("question", "states"),
    [
        (lifecycle.can_start, {C.CREATED}),
        (lifecycle.can_stop, {C.RUNNING, C.PAUSED, C.UNKNOWN}),
        (lifecycle.can_exec, {C.RUNNING}),
        (lifecycle.can_update, {C.CREATED, C.RUNNING, C.PAUSED}),
    ],
)
def test_what_may_be_asked_of_a_state(question: object, states: set[C]) -> None:
    assert callable(question)
    assert {state for state in C if question(state)} == states
