"""The recipe: inputs in, the bundle's config.json out. Each part is a module of this room; here is their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from isulad_py.model.container import ContainerConfig
from isulad_py.model.errors import DataLoss, InvalidInput
from isulad_py.model.image import ImageConfig
from isulad_py.model.pod import PodRecord
from isulad_py.model.resources import Resources
from isulad_py.model.security import Capabilities
from isulad_py.spec import apparmor, checks, devices, hooks, injection, mounts, namespaces, process, resources, seccomp
from isulad_py.spec.annotations import container_annotations, sandbox_annotations
from isulad_py.spec.capabilities import capability_sets
from isulad_py.spec.inputs import ContainerInputs, PauseInputs
from isulad_py.spec.schema import CapabilitySets, Linux, Mount, Process, Root, Spec

OCI_VERSION: Final = "1.0.2"
"""The oldest that carries what we write: crun 1.8 refuses a version newer than itself, no runtime an older one."""

OCI_VERSION_MAPPED_MOUNTS: Final = "1.1.0"
"""First with `uidMappings` of a mount."""

PAUSE_OOM_SCORE_ADJ: Final = -998
"""The pod goes with it: only the kubelet and the daemon itself are to live longer."""
PAUSE_CPU_SHARES: Final = 2

_encode = msgspec.json.Encoder().encode


class _Executable(msgspec.Struct, frozen=True):
    """The part of a config.json that an exec starts from."""

    process: Process


_decode_executable = msgspec.json.Decoder(_Executable).decode


def build_container(inputs: ContainerInputs) -> bytes:
    """The spec of a container, as JSON. Raises InvalidInput or Unsupported naming the CRI field."""
    check_request(inputs.config, inputs.pod)
    namespaces.check_identity(inputs.identity, inputs.pod.config.security.namespaces.own_users)
    config = inputs.config
    security = config.security
    sets = capability_sets(security.capabilities, privileged=security.privileged, host=inputs.host)
    all_mounts = _container_mounts(inputs)
    first = _container_process(inputs, sets)
    annotations = container_annotations(inputs.pod, config.metadata.name, inputs.image_name, inputs.annotations)
    spec = Spec(
        oci_version=_version(all_mounts),
        process=first,
        root=Root(path=inputs.rootfs_path, readonly=security.readonly_rootfs),
        mounts=all_mounts,
        linux=_container_linux(inputs, sets),
        hooks=hooks.staged(
            inputs.hooks,
            inputs.edits.hooks,
            annotations={**inputs.pod.config.annotations, **config.annotations, **annotations},
            command=first.args[0],
            bind_mounts=bool(config.mounts),
        ),
        annotations=annotations,
    )
    return _encode(spec)


def check_request(config: ContainerConfig, pod: PodRecord) -> None:
    """What no part of the recipe would notice. Needs nothing but the request: can be asked before anything is made."""
    if config.security.privileged and not pod.config.security.privileged:
        raise InvalidInput("config.linux.security_context.privileged: the pod is not privileged")
    devices.check(config.devices)


def _container_process(inputs: ContainerInputs, sets: CapabilitySets) -> Process:
    config, image, host = inputs.config, inputs.image, inputs.host
    security = config.security
    groups = injection.groups(inputs.identity.supplemental_groups, inputs.edits)
    env = process.environment(
        config.envs,
        image.env,
        hostname=inputs.pod.environment.hostname or host.hostname,
        home=inputs.home,
        tty=config.tty,
    )
    return Process(
        terminal=config.tty,
        user=process.user(msgspec.structs.replace(inputs.identity, supplemental_groups=groups), inputs.defaults.umask),
        args=process.arguments(config.command, config.args, image),
        env=injection.environment(env, inputs.edits),
        cwd=process.working_dir(config.working_dir, image.working_dir),
        capabilities=sets,
        rlimits=process.rlimits(inputs.defaults.ulimits),
        no_new_privileges=security.no_new_privs,
        apparmor_profile=apparmor.profile_name(
            security.apparmor, privileged=security.privileged, host=host, default=inputs.defaults.apparmor
        ),
        selinux_label=inputs.process_label,
        oom_score_adj=process.oom_score_adj(config.resources.oom_score_adj, host),
    )


def _container_linux(inputs: ContainerInputs, sets: CapabilitySets) -> Linux:
    config, host = inputs.config, inputs.host
    security = config.security
    privileged = security.privileged
    uids, gids = namespaces.id_mappings(inputs.pod.config.security.namespaces.own_users, inputs.handler)
    opened = (*(inputs.host_devices if privileged else ()), *inputs.devices, *inputs.edits.devices)
    return Linux(
        namespaces=(
            *namespaces.pid(
                security.namespaces,
                pod=inputs.pod.config.security.namespaces,
                pod_path=inputs.pod_pidns_path,
                target_path=inputs.target_pidns_path,
            ),
            *namespaces.shared(inputs.pod.environment),
            *namespaces.own(host, privileged=privileged),
        ),
        uid_mappings=uids,
        gid_mappings=gids,
        devices=devices.nodes(opened),
        cgroups_path=inputs.cgroups_path,
        resources=resources.linux_resources(
            config.resources,
            host,
            devices=devices.rules(opened, privileged=privileged),
            pids_limit=inputs.defaults.pids_limit,
        ),
        rootfs_propagation=mounts.root_propagation(config.mounts),
        seccomp=seccomp.filter_for(
            security.seccomp,
            privileged=privileged,
            capabilities=sets.bounding,
            host=host,
            localhost=inputs.seccomp_profile,
            default=inputs.defaults.seccomp,
        ),
        masked_paths=_hidden(security.masked_paths, "masked_paths", privileged=privileged),
        readonly_paths=_hidden(security.readonly_paths, "readonly_paths", privileged=privileged),
        mount_label=inputs.mount_label,
    )


def _container_mounts(inputs: ContainerInputs) -> tuple[Mount, ...]:
    config, security = inputs.config, inputs.config.security
    users = inputs.pod.config.security.namespaces.own_users
    defaults = [
        *mounts.base(users, privileged=security.privileged),
        *mounts.from_pod(inputs.pod.environment, readonly=security.readonly_rootfs),
        *mounts.anonymous_volumes(inputs.volume_dirs),
    ]
    requested = mounts.requested(config.mounts, inputs.image_mounts, inputs.handler, users)
    return mounts.combined(defaults, [*requested, *injection.mounts(inputs.edits.mounts)])


def _hidden(paths: Sequence[str], name: str, *, privileged: bool) -> tuple[str, ...]:
    """As the client lists them: it lists none for an unmasked /proc (CRI, LinuxContainerSecurityContext)."""
    if privileged:
        return ()
    return tuple(checks.inner_path(path, f"config.linux.security_context.{name}") for path in paths)


def _version(all_mounts: Sequence[Mount]) -> str:
    mapped = any(mount.uid_mappings or mount.gid_mappings for mount in all_mounts)
    return OCI_VERSION_MAPPED_MOUNTS if mapped else OCI_VERSION


def build_pause(inputs: PauseInputs) -> bytes:
    """The spec of the container that holds a pod's PID namespace: of the pod's own security context, with nothing else
    to do. Raises as `build_container`."""
    sets = capability_sets(Capabilities(), privileged=False, host=inputs.host)
    spec = Spec(
        oci_version=OCI_VERSION,
        process=_pause_process(inputs, sets),
        root=Root(path=inputs.rootfs_path, readonly=True),
        mounts=mounts.combined(
            [
                *mounts.base(inputs.pod.config.security.namespaces.own_users, privileged=False),
                *mounts.from_pod(inputs.pod.environment, readonly=True),
            ],
            (),
        ),
        linux=_pause_linux(inputs, sets),
        annotations=sandbox_annotations(inputs.pod, inputs.annotations),
    )
    return _encode(spec)


def _pause_process(inputs: PauseInputs, sets: CapabilitySets) -> Process:
    pod, host = inputs.pod, inputs.host
    image = ImageConfig(cmd=inputs.args) if inputs.args else inputs.image
    return Process(
        user=process.user(inputs.identity, None),
        args=process.arguments((), (), image),
        env=process.environment((), inputs.image.env, hostname=pod.environment.hostname or host.hostname),
        cwd=process.working_dir("", inputs.image.working_dir),
        capabilities=sets,
        no_new_privileges=True,
        apparmor_profile=apparmor.profile_name(
            pod.config.security.apparmor, privileged=False, host=host, default=inputs.defaults.apparmor
        ),
        selinux_label=inputs.process_label,
        oom_score_adj=process.oom_score_adj(PAUSE_OOM_SCORE_ADJ, host),
    )


def _pause_linux(inputs: PauseInputs, sets: CapabilitySets) -> Linux:
    pod, host = inputs.pod, inputs.host
    security = pod.config.security
    uids, gids = namespaces.id_mappings(security.namespaces.own_users, inputs.handler)
    return Linux(
        namespaces=(
            *namespaces.pid(security.namespaces, pod=security.namespaces, pod_path="", target_path=""),
            *namespaces.shared(pod.environment),
            *namespaces.own(host, privileged=False),
        ),
        uid_mappings=uids,
        gid_mappings=gids,
        cgroups_path=inputs.cgroups_path,
        resources=resources.linux_resources(
            Resources(cpu_shares=PAUSE_CPU_SHARES), host, devices=devices.rules((), privileged=False)
        ),
        seccomp=seccomp.filter_for(
            security.seccomp,
            privileged=security.privileged,
            capabilities=sets.bounding,
            host=host,
            localhost=inputs.seccomp_profile,
            default=inputs.defaults.seccomp,
        ),
        mount_label=inputs.mount_label,
    )


def build_exec(container_spec: bytes, cmd: Sequence[str], *, terminal: bool) -> bytes:
    """The OCI `process` (JSON) of a further command in a container, with its first process's user, environment,
    directory, capabilities, profiles and limits. Raises InvalidInput for an unusable command, DataLoss where
    `container_spec` is no config.json."""
    if not cmd or not cmd[0]:
        raise InvalidInput("cmd: must not be empty")
    for index, value in enumerate(cmd):
        checks.text(value, f"cmd[{index}]")
    try:
        first = _decode_executable(container_spec).process
    except msgspec.DecodeError as error:
        raise DataLoss(f"the container's config.json: {error}") from error
    env = first.env
    if terminal and not any(entry.startswith("TERM=") for entry in env):
        env = (*env, f"TERM={process.TERM}")
    return _encode(msgspec.structs.replace(first, args=tuple(cmd), terminal=terminal, env=env))
