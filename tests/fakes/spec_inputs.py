"""Inputs of a spec as tests want them."""

from __future__ import annotations

from typing import Any

import msgspec

from isulad_py.model.container import ContainerConfig, ContainerMetadata
from isulad_py.model.facts import HostFacts
from isulad_py.model.ids import PodId
from isulad_py.model.image import ImageConfig
from isulad_py.model.pod import PodConfig, PodEnvironment, PodMetadata, PodRecord
from isulad_py.model.security import ContainerSecurity, PodSecurity
from isulad_py.spec.capabilities import KNOWN
from isulad_py.spec.inputs import ContainerInputs
from tests.fakes.facts import host_facts

ENVIRONMENT = PodEnvironment(
    netns_path="/run/pods/p/net",
    ipcns_path="/run/pods/p/ipc",
    utsns_path="/run/pods/p/uts",
    shm_path="/run/pods/p/shm",
    hostname_path="/run/pods/p/hostname",
    hosts_path="/run/pods/p/hosts",
    resolv_path="/run/pods/p/resolv.conf",
    hostname="web-0",
)


def capable_host(**facts: Any) -> HostFacts:
    """A host whose daemon holds every capability, with the usual controllers of v1."""
    mounts = {name: f"/sys/fs/cgroup/{name}" for name in ("cpu", "memory", "pids", "cpuset", "devices")}
    known = {"capabilities": KNOWN, "cgroup_controllers": frozenset(mounts), "cgroup_mounts": mounts}
    return host_facts(**{**known, **facts})


def pod(**fields: Any) -> PodRecord:
    """A pod with namespaces and files of its own."""
    metadata = PodMetadata(name="web", uid="u-1", namespace="shop")
    plain = PodRecord(id=PodId("pod1"), config=PodConfig(metadata=metadata), environment=ENVIRONMENT)
    return msgspec.structs.replace(plain, **fields)


def privileged_pod() -> PodRecord:
    config = msgspec.structs.replace(pod().config, security=PodSecurity(privileged=True))
    return pod(config=config)


def config(**fields: Any) -> ContainerConfig:
    plain = ContainerConfig(metadata=ContainerMetadata(name="app"), command=("/bin/app",))
    return msgspec.structs.replace(plain, **fields)


def secured(**fields: Any) -> ContainerConfig:
    """A container with that security context."""
    return config(security=ContainerSecurity(**fields))


def inputs(asked: ContainerConfig | None = None, **fields: Any) -> ContainerInputs:
    plain = ContainerInputs(
        config=asked or config(),
        pod=pod(),
        image=ImageConfig(),
        host=capable_host(),
        rootfs_path="/graph/rootfs/c1",
        cgroups_path="/kubepods/pod1/c1",
        image_name="registry/app:1",
    )
    return msgspec.structs.replace(plain, **fields)
