"""Mounts and devices."""

from __future__ import annotations

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import Device, Mount, Propagation
from isulad_py.model.errors import InvalidInput
from isulad_py.wire.translate import checks, images, security


def mount(message: cri.Mount, field: str) -> Mount:
    """A mount of the host's files, or, where `image` is given, of an image's."""
    image = images.image_spec_if_given(message.image, f"{field}.image")
    found = Mount(
        container_path=checks.straight(message.container_path, f"{field}.container_path"),
        host_path=_host_path(message.host_path, f"{field}.host_path", needed=image is None),
        readonly=message.readonly,
        selinux_relabel=message.selinux_relabel,
        propagation=checks.member(Propagation, message.propagation, f"{field}.propagation"),
        uid_mappings=security.id_mappings(message.uid_mappings, f"{field}.uidMappings"),
        gid_mappings=security.id_mappings(message.gid_mappings, f"{field}.gidMappings"),
        recursive_read_only=message.recursive_read_only,
        image=image,
        image_sub_path=checks.inside(message.image_sub_path, f"{field}.image_sub_path"),
        mount_options=checks.names(message.mount_options, f"{field}.mount_options"),
    )
    if image is not None and found.host_path:
        raise InvalidInput(f"{field}.host_path: given beside image")
    if image is None and found.image_sub_path:
        raise InvalidInput(f"{field}.image_sub_path is given without image")
    if image is not None and not found.readonly:
        raise InvalidInput(f"{field}.readonly: is false, but an image volume cannot be written")
    for kind, mappings in (("uidMappings", found.uid_mappings), ("gidMappings", found.gid_mappings)):
        if not mappings and (found.uid_mappings or found.gid_mappings):
            raise InvalidInput(f"{field}.{kind} is empty, though the other one is given")
    if found.recursive_read_only and not (found.readonly and found.propagation is Propagation.PRIVATE):
        raise InvalidInput(f"{field}.recursive_read_only needs readonly and private propagation")
    return found


def _host_path(value: str, field: str, *, needed: bool) -> str:
    return checks.absolute(value, field) if value or needed else ""


def device(message: cri.Device, field: str) -> Device:
    host_path = checks.absolute(message.host_path, f"{field}.host_path")
    if not set(message.permissions) <= set("rwm"):
        raise InvalidInput(f"{field}.permissions: {message.permissions[:20]!r} has letters other than r, w and m")
    return Device(
        container_path=checks.straight(message.container_path or host_path, f"{field}.container_path"),
        host_path=host_path,
        permissions=message.permissions,
    )


def mount_message(found: Mount) -> cri.Mount:
    message = cri.Mount(
        container_path=found.container_path,
        host_path=found.host_path,
        readonly=found.readonly,
        selinux_relabel=found.selinux_relabel,
        propagation=cri.MountPropagation(found.propagation),
        uid_mappings=security.id_mapping_messages(found.uid_mappings),
        gid_mappings=security.id_mapping_messages(found.gid_mappings),
        recursive_read_only=found.recursive_read_only,
        image_sub_path=found.image_sub_path,
        mount_options=list(found.mount_options),
    )
    if found.image is not None:
        message.image = images.image_spec_message(found.image)
    return message
