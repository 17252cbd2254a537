from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.readiness import Condition, EngineStatus
from isulad_py.ports.runtime import HandlerFeatures
from isulad_py.wire.translate import status


def test_both_conditions_and_the_features_of_every_handler(codec: str) -> None:
    known = EngineStatus(
        runtime_ready=Condition(status=True),
        network_ready=Condition(status=False, reason="NoConfig", message="no conflist"),
        handlers=(
            HandlerFeatures(name=""),
            HandlerFeatures(name="crun", user_namespaces=True, recursive_read_only_mounts=True),
        ),
    )
    found = cri.StatusResponse().parse(bytes(status.status_message(known, {"a": "{}"})))
    assert found.status.conditions == [
        cri.RuntimeCondition(type="RuntimeReady", status=True),
        cri.RuntimeCondition(type="NetworkReady", reason="NoConfig", message="no conflist"),
    ]
    assert [handler.name for handler in found.runtime_handlers] == ["", "crun"]
    assert found.runtime_handlers[1].features == cri.RuntimeHandlerFeatures(
        user_namespaces=True, recursive_read_only_mounts=True
    )
    assert found.features == cri.RuntimeFeatures(supplemental_groups_policy=True, mount_options=True)
    assert found.info == {"a": "{}"}
