from __future__ import annotations

import msgspec
import pytest

from isulad_py.model.ids import PodId
from isulad_py.model.pod import PodConfig, PodMetadata, PodRecord, PodState
from isulad_py.model.security import NamespaceMode, NamespaceOptions, PodSecurity

RECORD = PodRecord(
    id=PodId("p"), config=PodConfig(metadata=PodMetadata(name="web", uid="u", namespace="ns", attempt=1))
)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, PodState.CREATING),
        ({"created_at": 1}, PodState.CREATING),
        ({"created_at": 1, "ready_at": 2}, PodState.READY),
        ({"created_at": 1, "stopping_at": 3}, PodState.NOTREADY),
        ({"created_at": 1, "ready_at": 2, "stopping_at": 3}, PodState.NOTREADY),
        ({"created_at": 1, "ready_at": 2, "stopping_at": 3, "stopped_at": 4}, PodState.NOTREADY),
        ({"created_at": 1, "stopped_at": 4, "removing_at": 5}, PodState.REMOVING),
    ],
)
def test_the_state_follows_from_the_facts(facts: dict[str, object], state: PodState) -> None:
    assert msgspec.structs.replace(RECORD, **facts).state is state


def test_the_reserved_name_has_all_that_makes_a_pod_unique() -> None:
    assert RECORD.name == "web_ns_u_1"


def test_host_network_is_a_mode() -> None:
    assert not RECORD.config.host_network
    options = PodSecurity(namespaces=NamespaceOptions(network=NamespaceMode.NODE))
    assert msgspec.structs.replace(RECORD.config, security=options).host_network


def test_a_record_survives_its_encoding() -> None:
    record = msgspec.structs.replace(RECORD, ready_at=1)
    assert msgspec.json.decode(msgspec.json.encode(record), type=PodRecord) == record
