"""Classes of block I/O and of the CPU's caches (RDT), which kubelets ask for by annotations. There are no classes here:
who asks for one is told so, as containerd does where none are configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isulad_py.model.container import ContainerConfig
from isulad_py.model.errors import Unsupported

OWN: Final = ("io.kubernetes.cri.blockio-class", "io.kubernetes.cri.rdt-class")
"""Of a container."""
PODS: Final = ("blockio.resources.beta.kubernetes.io", "rdt.resources.beta.kubernetes.io")
"""Prefixes of a pod's, which are for all of its containers (/pod) or for one of them (/container.NAME)."""


def refuse_classes(config: ContainerConfig, pod_annotations: Mapping[str, str]) -> None:
    """Raises Unsupported naming the annotation that asks for a class for this container."""
    for key in OWN:
        if config.annotations.get(key):
            raise Unsupported(f"config.annotations[{key}]: there are no such classes on this node")
    for prefix in PODS:
        for key in (f"{prefix}/container.{config.metadata.name}", f"{prefix}/pod"):
            if pod_annotations.get(key):
                raise Unsupported(f"sandbox_config.annotations[{key}]: there are no such classes on this node")
