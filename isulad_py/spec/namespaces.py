"""Which namespaces a container joins, and which it gets of its own (OCI config-linux.md, Namespaces)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isulad_py.model.container import Identity
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.facts import HostFacts
from isulad_py.model.pod import PodEnvironment
from isulad_py.model.security import IdMapping, NamespaceMode, NamespaceOptions, UserNamespace
from isulad_py.spec.inputs import Handler
from isulad_py.spec.schema import LinuxIdMapping, Namespace

FIELD: Final = "config.linux.security_context.namespace_options"


def shared(environment: PodEnvironment) -> list[Namespace]:
    """What the pod owns, joined by path; where it owns none the container stays in the host's."""
    paths = (
        ("network", environment.netns_path),
        ("ipc", environment.ipcns_path),
        ("uts", environment.utsns_path),
        ("user", environment.userns_path),
    )
    return [Namespace(type=kind, path=path) for kind, path in paths if path]


def own(host: HostFacts, *, privileged: bool) -> list[Namespace]:
    """A privileged container keeps the host's view of cgroups; on v1 the runtime mounts its own part only."""
    kinds = ["mount"]
    if host.cgroup_version == 2 and not privileged:
        kinds.append("cgroup")
    return [Namespace(type=kind) for kind in kinds]


def pid(options: NamespaceOptions, *, pod: NamespaceOptions, pod_path: str, target_path: str) -> list[Namespace]:
    """In the mode POD a container is in the host's where its pod is; where the pod has none, it gets its own."""
    if options.pid is NamespaceMode.NODE or (options.pid is NamespaceMode.POD and pod.pid is NamespaceMode.NODE):
        return []
    if options.pid is NamespaceMode.TARGET:
        if not target_path:
            raise InvalidInput(f"{FIELD}.target_id: no running container {options.target_id!r} in this pod")
        return [Namespace(type="pid", path=target_path)]
    if options.pid is NamespaceMode.POD:
        return [Namespace(type="pid", path=pod_path)]
    return [Namespace(type="pid")]


def id_mappings(users: UserNamespace | None, handler: Handler) -> tuple[tuple[LinuxIdMapping, ...], ...]:
    """(uids, gids) of the pod's own user namespace, which is joined by its path; empty where it has the host's, or
    where the runtime finds out by itself who is root in there."""
    if users is None:
        return (), ()
    if not handler.user_namespaces:
        raise Unsupported(f"{FIELD}.userns_options: the runtime has no user namespaces")
    if handler.reads_id_maps:
        return (), ()
    return mappings(users.uids), mappings(users.gids)


def check_identity(identity: Identity, users: UserNamespace | None) -> None:
    """Raises InvalidInput for a user or a group that the pod's own user namespace does not have."""
    if users is None:
        return
    field = "config.linux.security_context"
    if users.host_uid(identity.uid) is None:
        raise InvalidInput(f"{field}.run_as_user: {identity.uid} is not mapped in the pod's user namespace")
    for name, gid in (
        ("run_as_group", identity.gid),
        *(("supplemental_groups", gid) for gid in identity.supplemental_groups),
    ):
        if users.host_gid(gid) is None:
            raise InvalidInput(f"{field}.{name}: {gid} is not mapped in the pod's user namespace")


def mappings(values: Sequence[IdMapping]) -> tuple[LinuxIdMapping, ...]:
    return tuple(
        LinuxIdMapping(container_id=value.container_id, host_id=value.host_id, size=value.length) for value in values
    )
