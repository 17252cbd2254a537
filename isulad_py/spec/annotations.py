"""Annotations that tell an OCI runtime what it runs.

The keys are those that containerd writes; sandboxed runtimes (kata, runsc) tell a pod's first container from the others
by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from isulad_py.model.pod import PodRecord

PREFIX: Final = "io.kubernetes.cri."
OURS: Final = {"run.oci.systemd.subgroup": ""}
"""crun(1): no cgroup of its own within the scope that systemd makes. Limits, members and statistics are the scope's, as
with runc."""


def passed_on(patterns: Iterable[str], annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that a runtime is to be given: by their keys, or by how these begin (`run.oci.*`)."""
    wanted = tuple(patterns)
    return {
        key: value
        for key, value in annotations.items()
        if any(key.startswith(one[:-1]) if one.endswith("*") else key == one for one in wanted)
    }


def container_annotations(pod: PodRecord, name: str, image_name: str, extra: Mapping[str, str]) -> dict[str, str]:
    return {
        **extra,
        **OURS,
        **_of_pod(pod),
        PREFIX + "container-type": "container",
        PREFIX + "container-name": name,
        PREFIX + "image-name": image_name,
    }


def sandbox_annotations(pod: PodRecord, extra: Mapping[str, str]) -> dict[str, str]:
    return {**extra, **OURS, **_of_pod(pod), PREFIX + "container-type": "sandbox"}


def _of_pod(pod: PodRecord) -> dict[str, str]:
    metadata = pod.config.metadata
    return {
        PREFIX + "sandbox-id": pod.id,
        PREFIX + "sandbox-name": metadata.name,
        PREFIX + "sandbox-namespace": metadata.namespace,
        PREFIX + "sandbox-uid": metadata.uid,
    }
