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


class ImageArchives(Protocol):
    """Images as files. Paths are of this machine; every error names the archive, and the entry where there is one.

    What `load` and `import_rootfs` return is complete in the layer store, but not yet stored as a record.
    """

    async def load(self, path: str) -> tuple[ImageRecord, ...]:
        """All images of a docker-archive, an oci-archive or an oci-layout, with the names that it gives them. Raises
        InvalidInput, NotFound (nothing for this machine), DataLoss, Unsupported, PermissionDenied, ResourceExhausted.
        """
        ...

    async def save(self, image: ImageRecord, path: str, form: str) -> None:
        """`form` is docker-archive or oci-archive. Layers are written uncompressed, as their diff ids name them; equal
        images give equal archives. The file appears when it is complete. Raises InvalidInput, NotFound and DataLoss for
        layers that cannot be had as they came in."""
        ...

    async def import_rootfs(self, path: str, name: Reference) -> ImageRecord:
        """An image of one layer from a tar archive of a root file system, compressed or not."""
        ...


class ImageSource(Protocol):
    async def pull(self, request: PullRequest, progress: Callable[[PullProgress], None] | None = None) -> ImageRecord:
        """Resolves, fetches, verifies and unpacks. When it returns, every layer is in the layer store and the record
        is complete but not yet stored. Raises NotFound, Unauthenticated, PermissionDenied, Unavailable, DataLoss,
        Unsupported or ResourceExhausted, each naming registry, image and step. Cancellation leaves no partial layer
        visible."""
        ...

    async def close(self) -> None: ...
