"""Images from and to files, and further names for them: for a node that no registry feeds."""

from __future__ import annotations

from msgspec.structs import replace

from isulad_py.engine.images import Images
from isulad_py.model.errors import InvalidInput
from isulad_py.model.image import ImageRecord
from isulad_py.model.reference import parse as parse_reference
from isulad_py.ports.images import ImageArchives


class Archives:
    def __init__(self, *, images: Images, files: ImageArchives) -> None:
        self._images = images
        self._files = files

    async def load(self, path: str, name: str = "") -> list[ImageRecord]:
        """The images of an archive, under the names that it gives them; the only one of an archive also under `name`.
        Errors as ports.images.ImageArchives.load."""
        wanted = parse_reference(name, field="name") if name else None
        async with self._images.bringing():
            found = await self._files.load(path)
            if wanted is not None:
                if len({record.id for record in found}) != 1:
                    raise InvalidInput(f"name: {name} for {len(found)} images of archive {path}")
                found = tuple(replace(record, repo_tags=(*record.repo_tags, wanted.repo_tag)) for record in found)
            stored = [await self._images.store(record) for record in found]
        return list({record.id: record for record in stored}.values())

    async def save(self, image: str, path: str, form: str) -> ImageRecord:
        """Where `image` is one of its tags, the archive has that name only. NotFound for an image that is not here."""
        async with self._images.bringing():
            record = self._images.require(image)
            tags = record.repo_tags
            if not _is_id(image, record):
                tag = parse_reference(image).repo_tag
                tags = (tag,) if tag in tags else tags
            await self._files.save(replace(record, repo_tags=tags), path, form)
        return record

    async def import_rootfs(self, path: str, name: str) -> ImageRecord:
        reference = parse_reference(name, field="name")
        if not reference.tag or reference.digest:
            raise InvalidInput(f"name: {name}: an import has a tag, not a digest")
        async with self._images.bringing():
            return await self._images.store(await self._files.import_rootfs(path, reference))

    async def tag(self, image: str, name: str) -> ImageRecord:
        """One more name; taken from the image that had it."""
        reference = parse_reference(name, field="name")
        if not reference.tag or reference.digest:
            raise InvalidInput(f"name: {name}: a tag cannot have a digest")
        async with self._images.bringing():
            record = self._images.require(image)
            return await self._images.store(replace(record, repo_tags=(reference.repo_tag,)))


def _is_id(image: str, record: ImageRecord) -> bool:
    return record.id.removeprefix("sha256:").startswith(image.removeprefix("sha256:"))
