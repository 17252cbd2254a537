"""Containers: configuration in; list items and statuses out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from isulad_py.api.runtime import v1 as cri
from isulad_py.model import signals
from isulad_py.model.container import (
    ContainerConfig,
    ContainerMetadata,
    ContainerRecord,
    ContainerState,
    Identity,
    ImageSpec,
)
from isulad_py.model.errors import InvalidInput
from isulad_py.wire.translate import checks, images, mounts, presence, resources, security

_STATES: Final[dict[ContainerState, int]] = {
    ContainerState.CREATING: cri.ContainerState.CONTAINER_UNKNOWN,
    ContainerState.CREATED: cri.ContainerState.CONTAINER_CREATED,
    ContainerState.RUNNING: cri.ContainerState.CONTAINER_RUNNING,
    ContainerState.PAUSED: cri.ContainerState.CONTAINER_RUNNING,
    ContainerState.EXITED: cri.ContainerState.CONTAINER_EXITED,
    ContainerState.UNKNOWN: cri.ContainerState.CONTAINER_UNKNOWN,
    ContainerState.REMOVING: cri.ContainerState.CONTAINER_EXITED,
}
"""CRI has no word for paused, nor for what is being made or removed."""


def container_config(message: cri.ContainerConfig, field: str = "config") -> ContainerConfig:
    """The model of a whole configuration; InvalidInput names the field, starting with `field`."""
    presence.required(message, field)
    presence.required(message.metadata, f"{field}.metadata")
    checks.unsupported(presence.given(message.windows), f"{field}.windows")
    checks.at_most(checks.LIST_MAX, message.mounts, f"{field}.mounts")
    checks.at_most(checks.LIST_MAX, message.devices, f"{field}.devices")
    linux = message.linux
    config = ContainerConfig(
        metadata=ContainerMetadata(
            name=checks.required_name(message.metadata.name, f"{field}.metadata.name"),
            attempt=message.metadata.attempt,
        ),
        image=images.image_spec(message.image, f"{field}.image"),
        command=checks.arguments(message.command, f"{field}.command"),
        args=checks.arguments(message.args, f"{field}.args"),
        working_dir=checks.straight_or_empty(message.working_dir, f"{field}.working_dir"),
        envs=tuple(_variable(env, f"{field}.envs[{index}]") for index, env in enumerate(message.envs)),
        mounts=tuple(mounts.mount(m, f"{field}.mounts[{index}]") for index, m in enumerate(message.mounts)),
        devices=tuple(mounts.device(d, f"{field}.devices[{index}]") for index, d in enumerate(message.devices)),
        cdi_devices=tuple(
            checks.required_name(device.name, f"{field}.CDI_devices[{index}].name")
            for index, device in enumerate(message.cdi_devices)
        ),
        labels=checks.keyed(message.labels, f"{field}.labels"),
        annotations=checks.keyed(message.annotations, f"{field}.annotations"),
        log_path=_log_path(message.log_path, f"{field}.log_path"),
        stdin=message.stdin,
        stdin_once=message.stdin_once,
        tty=message.tty,
        resources=resources.resources(linux.resources, f"{field}.linux.resources"),
        security=security.container_security(linux.security_context, f"{field}.linux.security_context"),
        stop_signal=_stop_signal(message.stop_signal, f"{field}.stop_signal"),
    )
    variables = (f"{key}={value}" for key, value in config.envs)
    checks.fit_together((*config.command, *config.args, *variables), f"{field}.command, args and envs")
    return config


def _log_path(value: str, field: str) -> str:
    path = checks.inside(value, field)
    if path == ".":
        raise InvalidInput(f"{field}: {value!r} is the log directory itself, not a file in it")
    return path


def _variable(message: cri.KeyValue, field: str) -> tuple[str, str]:
    """One variable of the environment. A refusal does not repeat the value, which can be a secret."""
    key = checks.required_name(message.key, f"{field}.key")
    if "=" in key:
        raise InvalidInput(f"{field}.key: {key!r} has an equals sign")
    try:
        value = message.value.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{field}.value (of {key}) is not UTF-8, which an OCI spec cannot carry") from None
    checks.argument(f"{key}={value}", f"{field}.value (of {key})")
    return key, value


def _stop_signal(number: int, field: str) -> int:
    number = int(number)
    try:
        signals.kernel_number(number)
    except InvalidInput:
        raise InvalidInput(f"{field}: {number} is not a value of Signal") from None
    return number


def _metadata_message(metadata: ContainerMetadata) -> cri.ContainerMetadata:
    return cri.ContainerMetadata(name=metadata.name, attempt=metadata.attempt)


def container_item(record: ContainerRecord) -> cri.Container:
    """As ListContainers shows it; the image is the one that the client asked for, by the name that it used."""
    return cri.Container(
        id=record.id,
        pod_sandbox_id=record.pod_id,
        metadata=_metadata_message(record.config.metadata),
        image=images.image_spec_message(msgspec.structs.replace(record.config.image, image_ref=record.image_id)),
        image_ref=record.image_ref or record.image_id,
        state=cri.ContainerState(_STATES[record.state]),
        created_at=_created_at(record),
        labels=record.config.labels,
        annotations=record.config.annotations,
        image_id=record.image_id,
    )


def container_status(record: ContainerRecord) -> cri.ContainerStatus:
    """All that a kubelet builds a pod's status from."""
    message = cri.ContainerStatus(
        id=record.id,
        metadata=_metadata_message(record.config.metadata),
        state=cri.ContainerState(_STATES[record.state]),
        created_at=_created_at(record),
        started_at=record.started_at,
        image=_status_image(record),
        image_ref=record.image_ref or record.image_id,
        reason=record.reason,
        labels=record.config.labels,
        annotations=record.config.annotations,
        mounts=[mounts.mount_message(found) for found in record.mounts],
        log_path=record.log_path,
        resources=cri.ContainerResources(linux=resources.resources_message(record.resources)),
        image_id=record.image_id,
        user=_user(record.identity),
        stop_signal=cri.Signal(signals.cri_number(record.stop_signal)),
    )
    if record.exit is not None:
        message.finished_at = record.exit.finished_at
        message.exit_code = record.exit.exit_code
        message.message = record.exit.message
    return message


def container_statuses(records: Sequence[ContainerRecord]) -> list[cri.ContainerStatus]:
    """Of one pod's containers; one that is only being made is not shown yet."""
    return [container_status(record) for record in records if record.state is not ContainerState.CREATING]


def _created_at(record: ContainerRecord) -> int:
    """Never zero: a kubelet takes a container without it for broken."""
    return record.created_at or record.reserved_at


def _status_image(record: ContainerRecord) -> cri.ImageSpec:
    """A name of the image, whatever the client called it: kubelets create containers by image id."""
    asked = record.config.image
    spec = ImageSpec(
        image=record.image_name or asked.image,
        annotations=asked.annotations,
        user_specified_image=asked.user_specified_image,
        runtime_handler=asked.runtime_handler,
        image_ref=record.image_id,
    )
    return images.image_spec_message(spec)


def _user(identity: Identity) -> cri.ContainerUser:
    linux = cri.LinuxContainerUser(
        uid=identity.uid, gid=identity.gid, supplemental_groups=list(identity.supplemental_groups)
    )
    return cri.ContainerUser(linux=linux)


def container_attributes(record: ContainerRecord) -> cri.ContainerAttributes:
    return cri.ContainerAttributes(
        id=record.id,
        metadata=_metadata_message(record.config.metadata),
        labels=record.config.labels,
        annotations=record.config.annotations,
    )
