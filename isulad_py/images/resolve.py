"""From what a name stands for to this machine's image: through indexes to one manifest and its configuration."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from isulad_py.images.manifest import (
    CONFIG_LIMIT,
    Configuration,
    Descriptor,
    Index,
    Manifest,
    choose_manifests,
    nothing_fits,
    parse_configuration,
    parse_document,
)
from isulad_py.images.platform import Platform, runs_on
from isulad_py.images.registry import Document, Repository
from isulad_py.model.errors import DataLoss, NotFound, Unsupported
from isulad_py.model.ids import Digest

INDEX_DEPTH: Final = 3
"""Indexes within indexes."""


class Found(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    digest: Digest
    """Of the manifest."""
    raw_config: bytes
    configuration: Configuration

    @property
    def platform(self) -> Platform:
        told = self.configuration
        return Platform(told.os, told.architecture, told.variant)


async def find_image(repository: Repository, document: Document, machine: str) -> Found:
    """The image below a manifest or an index. Raises what the repository raises, DataLoss, Unsupported and NotFound."""
    return await _Search(repository, machine).below(document, INDEX_DEPTH)


class _Search:
    def __init__(self, repository: Repository, machine: str) -> None:
        self._repository = repository
        self._machine = machine

    async def below(self, document: Document, depth: int) -> Found:
        with self._repository.naming("read manifest"):
            parsed = parse_document(document.body, document.media_type)
        if isinstance(parsed, Manifest):
            return await self._image(parsed, document.digest)
        with self._repository.naming("read manifest"):
            if not depth:
                raise DataLoss(f"more than {INDEX_DEPTH} indexes within each other")
            entries = choose_manifests(parsed, self._machine)
        if entries[0].platform is not None:
            return await self._entry(entries[0], depth)
        return await self._first_fitting(parsed, entries, depth)

    async def _first_fitting(self, index: Index, entries: tuple[Descriptor, ...], depth: int) -> Found:
        """Of entries that do not say for what they are, by what their configurations say."""
        for entry in entries:
            try:
                found = await self._entry(entry, depth)
            except (Unsupported, NotFound):
                continue  # an artifact, or an index of other platforms
            if runs_on(found.platform, self._machine):
                return found
        with self._repository.naming("read manifest"):
            raise nothing_fits(index, self._machine)

    async def _entry(self, entry: Descriptor, depth: int) -> Found:
        document = await self._repository.manifest(entry.digest)
        with self._repository.naming("read manifest"):
            if len(document.body) != entry.size:
                size = len(document.body)
                raise DataLoss(f"manifest {entry.digest}: {size} bytes, where the index says {entry.size}")
        return await self.below(document, depth - 1)

    async def _image(self, manifest: Manifest, digest: Digest) -> Found:
        raw_config = await self._repository.blob(manifest.config, CONFIG_LIMIT, "fetch configuration")
        with self._repository.naming("read configuration"):
            configuration = parse_configuration(raw_config, len(manifest.layers))
        return Found(manifest=manifest, digest=digest, raw_config=raw_config, configuration=configuration)
