"""Identifiers: 64 hexadecimal characters, shown as 12; digests as `sha256:<hex>`."""

from __future__ import annotations

import secrets
from typing import NewType

PodId = NewType("PodId", str)
ContainerId = NewType("ContainerId", str)
ImageId = NewType("ImageId", str)
"""Digest of the image's configuration (`sha256:<hex>`): one identity for one image, whatever its names."""
Digest = NewType("Digest", str)
ChainId = NewType("ChainId", str)
"""Digest of a layer together with all the layers below it (OCI image spec, config.md, Layer ChainID)."""

ID_LENGTH = 64


def new_id() -> str:
    """A new object id."""
    return secrets.token_hex(ID_LENGTH // 2)


def short(identifier: str) -> str:
    """The form for people: 12 characters, without the algorithm of a digest."""
    return identifier.removeprefix("sha256:")[:12]
