"""What a checkpoint says about the container that it was taken from."""

from __future__ import annotations

from msgspec import Struct


class Checkpointed(Struct, frozen=True, kw_only=True):
    """Of the archive's config.dump and spec.dump."""

    name: str
    """Of the container, as its engine called it."""
    image_name: str
    """A name of the image under its root file system, usually with a tag."""
    image_ref: str
    """The same image by digest: a repository digest or its id."""
    binds: frozenset[str]
    """Paths in the container that something of its host was mounted on."""
    namespaces: frozenset[str]
    """Types, as in the OCI runtime spec, of those it did not share with its host."""
    terminal: bool
