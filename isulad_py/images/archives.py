"""Images from archives into the layer store, and back."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from isulad_py.host import blocking
from isulad_py.images import archive_write
from isulad_py.images.archive import READ_BYTES, Archive
from isulad_py.images.archive_contents import ArchivedImage, contents
from isulad_py.images.inflate import inflate
from isulad_py.images.manifest import chain_ids, parse_configuration
from isulad_py.images.platform import architecture_of
from isulad_py.images.policy import admit_file, read_policy
from isulad_py.images.recipe import Recipe
from isulad_py.images.unpack import BlobFacts, UnpackLimits, unpack
from isulad_py.model.errors import EngineError, InvalidInput
from isulad_py.model.ids import ChainId, Digest, ImageId
from isulad_py.model.image import ImageRecord, Layer
from isulad_py.model.reference import Reference
from isulad_py.ports.layers import LayerFacts, LayerIngest

AT_ONCE: Final = 4
"""Archives that are read or written; more wait. Each has a thread of those that all blocking work shares."""


class ArchiveImages:
    """Implements ports.images.ImageArchives. A cancelled call ends once the layer at hand has."""

    def __init__(
        self,
        *,
        layers: LayerIngest,
        scratch: str,
        policy_file: str = "",
        limits: UnpackLimits | None = None,
        machine: str = "",
    ) -> None:
        """`scratch` is a directory for what a compressed archive becomes, in files without a name. `machine` is
        uname's; empty for this one."""
        self.policy_file = policy_file
        """containers-policy.json(5), read anew for each archive."""
        self._layers = layers
        self._scratch = scratch
        self._limits = limits or UnpackLimits()
        self._machine = machine or os.uname().machine
        self._room = asyncio.Semaphore(AT_ONCE)

    async def load(self, path: str) -> tuple[ImageRecord, ...]:
        archive = Archive(path, scratch=self._scratch, limits=self._limits)
        async with self._room:
            try:
                await blocking.run_to_end(archive.open)
                transport = await blocking.run(lambda: archive.transport)
                await self._admit(transport, path, f"archive {path}")
                images = await blocking.run_to_end(contents, archive, self._machine)
                return tuple([await self._bring(archive, image) for image in images])
            finally:
                archive.close()

    async def _admit(self, transport: str, path: str, what: str) -> None:
        try:
            policy = await read_policy(self.policy_file)
            if policy is not None:
                admit_file(policy, transport, path)
        except EngineError as error:
            raise type(error)(f"{what}: {error}") from error

    async def _bring(self, archive: Archive, image: ArchivedImage) -> ImageRecord:
        chain = chain_ids(image.configuration.diff_ids)
        with self._layers.keep(chain):
            for chain_id, diff_id, layer in zip(chain, image.configuration.diff_ids, image.layers, strict=True):
                if self._layers.find(chain_id) is None:
                    blob = BlobFacts(digest=layer.digest, size=layer.size, diff_id=diff_id)
                    try:
                        await self._unpack(archive.chunks(layer.entry), blob, chain_id)
                    except EngineError as error:
                        raise type(error)(f"archive {archive.path}: {layer.entry}: {error}") from error
            record = self._record(image, chain)
            await self._layers.publish(chain)
        return record

    async def _unpack(self, chunks: Iterable[bytes], blob: BlobFacts, chain_id: ChainId) -> None:
        staged = await self._layers.stage(chain_id)
        try:
            work = partial(
                unpack, chunks, blob, staged, self._limits, self._layers.recipe_of(staged), grow=self._layers.take
            )
            tree = await blocking.run_to_end(work)
            facts = LayerFacts(
                chain_id=chain_id,
                diff_id=blob.diff_id,
                used_bytes=tree.used_bytes,
                inodes=tree.inodes,
                implied=tree.implied,
            )
            await self._layers.seal(staged, facts)
        except BaseException:
            await self._layers.discard(staged)
            raise

    def _record(self, image: ArchivedImage, chain: Iterable[ChainId]) -> ImageRecord:
        facts = [layer for layer in map(self._layers.find, chain) if layer is not None]
        layers = tuple(
            Layer(chain_id=layer.chain_id, diff_id=layer.diff_id, size_bytes=layer.used_bytes) for layer in facts
        )
        digests = [name.at(image.manifest_digest).repo_digest for name in image.names if image.manifest_digest]
        configuration = image.configuration
        return ImageRecord(
            id=ImageId(image.config_digest),
            manifest_digest=image.manifest_digest,
            repo_tags=tuple(name.repo_tag for name in image.names if name.tag),
            repo_digests=tuple(dict.fromkeys(digests)),
            config=configuration.config,
            layers=layers,
            size_bytes=sum(layer.size_bytes for layer in layers) + len(image.raw_config),
            os=configuration.os,
            architecture=configuration.architecture or architecture_of(self._machine),
            created_at=configuration.created_at,
            raw_config=image.raw_config,
        )

    async def save(self, image: ImageRecord, path: str, form: str) -> None:
        places = [self._layers.place(layer.chain_id) for layer in image.layers]
        recipes = [Recipe(place.recipe, place.directory) for place in places]
        async with self._room:
            await blocking.run_to_end(archive_write.write, image, recipes, path, form)

    async def import_rootfs(self, path: str, name: Reference) -> ImageRecord:
        async with self._room:
            await self._admit("tarball", path, f"import {path}")
            return await self._import(path, name)

    async def _import(self, path: str, name: Reference) -> ImageRecord:
        try:
            blob, created = await blocking.run_to_end(self._measure, path)
            raw_config = _configuration(blob.diff_id, created, architecture_of(self._machine))
            image = ArchivedImage(
                raw_config=raw_config,
                config_digest=Digest(f"sha256:{hashlib.sha256(raw_config).hexdigest()}"),
                configuration=parse_configuration(raw_config, 1),
                layers=(),
                names=(name,),
            )
            [chain_id] = chain = chain_ids([blob.diff_id])
            with self._layers.keep(chain):
                if self._layers.find(chain_id) is None:
                    await self._unpack(_pieces(path), blob, chain_id)
                record = self._record(image, chain)
                await self._layers.publish(chain)
        except EngineError as error:
            raise type(error)(f"import {path}: {error}") from error
        except OSError as error:
            raise InvalidInput(f"import {path}: {(error.strerror or str(error)).lower()}") from error
        return record

    def _measure(self, path: str) -> tuple[BlobFacts, str]:
        """Both digests, and when the file was made: the same file gives the same image."""
        if not Path(path).is_file():
            raise InvalidInput("there is no such file")
        whole, plain = hashlib.sha256(), hashlib.sha256()
        size = given = 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for piece in _pieces(path):
                size += len(piece)
                whole.update(piece)
                yield piece

        for piece in inflate(counted()):
            given += len(piece)
            self._limits.check_expansion(given, size, "it")
            plain.update(piece)
        created = datetime.fromtimestamp(int(Path(path).stat().st_mtime), UTC).isoformat().replace("+00:00", "Z")
        blob = BlobFacts(
            digest=Digest(f"sha256:{whole.hexdigest()}"), size=size, diff_id=Digest(f"sha256:{plain.hexdigest()}")
        )
        return blob, created


def _pieces(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while piece := file.read(READ_BYTES):
            yield piece


def _configuration(diff_id: Digest, created: str, architecture: str) -> bytes:
    return msgspec.json.encode(
        {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
            "history": [{"created": created, "comment": "imported"}],
        }
    )
