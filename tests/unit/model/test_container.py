from __future__ import annotations

import msgspec
import pytest

from isulad_py.model.container import ContainerConfig, ContainerMetadata, ContainerRecord, ContainerState, ExitFact
from isulad_py.model.ids import ContainerId, PodId

RECORD = ContainerRecord(
    id=ContainerId("c"), pod_id=PodId("p"), config=ContainerConfig(metadata=ContainerMetadata(name="main", attempt=2))
)
ENDED = ExitFact(exit_code=0, finished_at=9)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, ContainerState.CREATING),
        ({"created_at": 1}, ContainerState.CREATED),
        ({"created_at": 1, "starting_at": 2}, ContainerState.CREATED),
        ({"created_at": 1, "started_at": 2}, ContainerState.RUNNING),
        ({"created_at": 1, "started_at": 2, "paused_at": 3}, ContainerState.PAUSED),
        ({"created_at": 1, "started_at": 2, "stopping_at": 3}, ContainerState.RUNNING),
        ({"created_at": 1, "started_at": 2, "paused_at": 3, "exit": ENDED}, ContainerState.EXITED),
        ({"created_at": 1, "exit": ENDED}, ContainerState.EXITED),
        ({"created_at": 1, "exit": ENDED, "removing_at": 4}, ContainerState.REMOVING),
    ],
)
def test_the_state_follows_from_the_facts(facts: dict[str, object], state: ContainerState) -> None:
    assert msgspec.structs.replace(RECORD, **facts).state is state


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (None, ""),
        (ENDED, "Completed"),
        (ExitFact(exit_code=1, finished_at=9), "Error"),
        (ExitFact(exit_code=137, finished_at=9, oom_killed=True), "OOMKilled"),
        (ExitFact(exit_code=255, finished_at=9, reason="ContainerStatusUnknown"), "ContainerStatusUnknown"),
    ],
)
def test_the_reason_in_a_kubelets_words(ended: ExitFact | None, reason: str) -> None:
    assert msgspec.structs.replace(RECORD, exit=ended).reason == reason


def test_attempts_have_names_of_their_own() -> None:
    assert RECORD.name == "main_2"


def test_a_record_survives_its_encoding() -> None:
    record = msgspec.structs.replace(RECORD, exit=ENDED, created_at=1)
    assert msgspec.json.decode(msgspec.json.encode(record), type=ContainerRecord) == record
