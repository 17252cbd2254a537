from __future__ import annotations

import pytest

from isulad_py.model.container import ContainerConfig, ContainerMetadata
from isulad_py.model.errors import Unsupported
from isulad_py.spec.resource_classes import OWN, PODS, refuse_classes


def config(**annotations: str) -> ContainerConfig:
    return ContainerConfig(metadata=ContainerMetadata(name="app"), annotations=annotations)


@pytest.mark.parametrize("key", OWN)
def test_a_containers_own_class_is_refused_by_name(key: str) -> None:
    with pytest.raises(Unsupported, match=key):
        refuse_classes(config(**{key: "gold"}), {})


@pytest.mark.parametrize("prefix", PODS)
@pytest.mark.parametrize("what", ["pod", "container.app"])
def test_a_pods_class_is_refused_by_name(prefix: str, what: str) -> None:
    with pytest.raises(Unsupported, match=f"{prefix}/{what}"):
        refuse_classes(config(), {f"{prefix}/{what}": "gold"})


def test_other_containers_classes_and_no_class_are_no_reason() -> None:
    pod = {f"{prefix}/container.other": "gold" for prefix in PODS} | {f"{prefix}/pod": "" for prefix in PODS}
    refuse_classes(config(**dict.fromkeys(OWN, "")), pod)
