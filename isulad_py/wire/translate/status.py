"""Status of the engine (CRI Status)."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.engine.readiness import Condition, EngineStatus
from isulad_py.ports.runtime import HandlerFeatures


def status_message(status: EngineStatus, info: dict[str, str]) -> cri.StatusResponse:
    return cri.StatusResponse(
        status=cri.RuntimeStatus(
            conditions=[
                _condition("RuntimeReady", status.runtime_ready),
                _condition("NetworkReady", status.network_ready),
            ]
        ),
        info=info,
        runtime_handlers=[_handler(handler) for handler in status.handlers],
        # Without the first a kubelet refuses pods that ask for the Strict policy.
        features=cri.RuntimeFeatures(supplemental_groups_policy=True, mount_options=True),
    )


def _condition(kind: str, condition: Condition) -> cri.RuntimeCondition:
    return cri.RuntimeCondition(type=kind, status=condition.status, reason=condition.reason, message=condition.message)


def _handler(handler: HandlerFeatures) -> cri.RuntimeHandler:
    features = cri.RuntimeHandlerFeatures(
        recursive_read_only_mounts=handler.recursive_read_only_mounts, user_namespaces=handler.user_namespaces
    )
    return cri.RuntimeHandler(name=handler.name, features=features)
