"""Images: names and credentials in; images and their file systems out."""

from __future__ import annotations

from typing import Final

from isulad_py.api.runtime import v1 as cri
from isulad_py.model.container import ImageSpec
from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.stats import FilesystemUsage
from isulad_py.wire.translate import checks, presence

UID_DIGITS: Final = 10
"""Ids have 32 bits; a longer number in an image is nobody's id, and would not fit the message."""


def image_spec(message: cri.ImageSpec, field: str) -> ImageSpec:
    """An image that must be named."""
    return ImageSpec(
        image=checks.required_name(message.image, f"{field}.image"),
        annotations=checks.keyed(message.annotations, f"{field}.annotations"),
        user_specified_image=checks.name(message.user_specified_image, f"{field}.user_specified_image"),
        runtime_handler=checks.name(message.runtime_handler, f"{field}.runtime_handler"),
        image_ref=checks.name(message.image_ref, f"{field}.image_ref"),
    )


def image_spec_if_given(message: cri.ImageSpec, field: str) -> ImageSpec | None:
    return image_spec(message, field) if presence.given(message) else None


def image_spec_message(spec: ImageSpec) -> cri.ImageSpec:
    return cri.ImageSpec(
        image=spec.image,
        annotations=spec.annotations,
        user_specified_image=spec.user_specified_image,
        runtime_handler=spec.runtime_handler,
        image_ref=spec.image_ref,
    )


def credentials(message: cri.AuthConfig) -> Credentials | None:
    """None where no field says anything: kubelets send an empty message for "no credentials"."""
    found = Credentials(
        username=message.username,
        password=message.password,
        auth=message.auth,
        server_address=message.server_address,
        identity_token=message.identity_token,
        registry_token=message.registry_token,
    )
    return None if found == Credentials() else found


def auth_message(found: Credentials | None) -> cri.AuthConfig:
    if found is None:
        return cri.AuthConfig()
    return cri.AuthConfig(
        username=found.username,
        password=found.password,
        auth=found.auth,
        server_address=found.server_address,
        identity_token=found.identity_token,
        registry_token=found.registry_token,
    )


def image_item(record: ImageRecord) -> cri.Image:
    """As ListImages and ImageStatus show it."""
    message = cri.Image(
        id=record.id,
        repo_tags=list(record.repo_tags),
        repo_digests=list(record.repo_digests),
        size=record.size_bytes,
        pinned=record.pinned,
        spec=cri.ImageSpec(image=record.reference, image_ref=record.id),
    )
    user = record.config.user.partition(":")[0]
    if user.isascii() and user.isdigit() and len(user) <= UID_DIGITS:
        message.uid = cri.Int64Value(value=int(user))
    else:
        message.username = user
    return message


def filesystem_usage(usage: FilesystemUsage) -> cri.FilesystemUsage:
    return cri.FilesystemUsage(
        timestamp=usage.timestamp,
        fs_id=cri.FilesystemIdentifier(mountpoint=usage.mountpoint),
        used_bytes=cri.UInt64Value(value=usage.used_bytes),
        inodes_used=cri.UInt64Value(value=usage.inodes_used),
    )
