"""Where images come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from isulad_py.model.image import Credentials, ImageRecord
from isulad_py.model.reference import Reference


class PullRequest(Struct, frozen=True, kw_only=True):
    reference: Reference
    credentials: Credentials | None = None
    known: tuple[ImageRecord, ...] = ()
    """Images already here, so that an unchanged one costs one manifest request."""


class PullProgress(Struct, frozen=True, kw_only=True):
    step: str
    """resolving, downloading, unpacking, done."""
    digest: str = ""
    done_bytes: int = 0
    total_bytes: int = 0


class ImageSource(Protocol):
    async def pull(self, request: PullRequest, progress: Callable[[PullProgress], None] | None = None) -> ImageRecord:
        """Resolves, fetches, verifies and unpacks. When it returns, every layer is in the layer store and the record
        is complete but not yet stored. Raises NotFound, Unauthenticated, PermissionDenied, Unavailable, DataLoss,
        Unsupported or ResourceExhausted, each naming registry, image and step. Cancellation leaves no partial layer
        visible."""
        ...

    async def close(self) -> None: ...
