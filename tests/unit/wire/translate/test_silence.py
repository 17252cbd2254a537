"""No field of a configuration is passed over: it changes what the engine is asked for, or it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.errors import EngineError
from isulad_py.wire.translate import containers, pods
from tests.any_request import Path, paths, put
from tests.cri_messages import field_values

TRIES = settings(
    max_examples=500,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LOCALHOST = cri.SecurityProfileProfileType.Localhost


def pod() -> cri.PodSandboxConfig:
    return cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="p"))


def container() -> cri.ContainerConfig:
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="c"), image=cri.ImageSpec(image="i"), command=["true"]
    )


def outcome(translate: Callable[[Any], object], message: Any) -> object:
    try:
        return translate(type(message)().parse(bytes(message)))
    except EngineError as refusal:
        return str(refusal)


CASES = [
    *((pod, pods.pod_config, path, kind) for path, kind in paths(cri.PodSandboxConfig)),
    *((container, containers.container_config, path, kind) for path, kind in paths(cri.ContainerConfig)),
]
CASES = [case for case in CASES if "windows" not in case[2][:-1]]
"""That is refused as a whole."""


@pytest.mark.parametrize(
    ("base", "translate", "path", "kind"), CASES, ids=[f"{case[0].__name__}.{'.'.join(case[2])}" for case in CASES]
)
def test_no_field_is_passed_over(
    base: Callable[[], Any], translate: Callable[[Any], object], path: Path, kind: type
) -> None:
    def around() -> Any:
        """With all that the field is part of, so that it is the field itself that shows."""
        message = base()
        if path[-1] == "localhost_ref":
            put(message, (*path[:-1], "profile_type"), LOCALHOST)
        elif len(path) > 1:
            put(message, path[:-1], reached(message, path[:-1]))
        return message

    without = outcome(translate, around())

    def shows(value: object) -> bool:
        message = around()
        put(message, path, value)
        return outcome(translate, message) != without

    find(field_values(kind, path[-1]), shows, settings=TRIES)


def reached(message: Any, path: Path) -> Any:
    for name in path:
        message = getattr(message, name)
    message._serialized_on_wire = True
    return message
