"""An image as a docker-archive or an oci-archive: the same image gives the same bytes. Synchronous."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from isulad_py.host.failures import translated
from isulad_py.images.manifest import OCI_INDEX, OCI_MANIFEST, digest_of
from isulad_py.images.recipe import Recipe
from isulad_py.model.errors import DataLoss, InvalidInput, NotFound, Unsupported
from isulad_py.model.image import ImageRecord

DOCKER: Final = "docker-archive"
OCI: Final = "oci-archive"
FORMS: Final = (DOCKER, OCI)
_BLOCK: Final = 512
_OCI_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_OCI_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


def write(image: ImageRecord, recipes: list[Recipe], path: str, form: str) -> None:
    """`recipes` are those of the image's layers. The file appears when it is complete and verified."""
    if form not in FORMS:
        raise InvalidInput(f"format {form[:100]!r}: there are {' and '.join(FORMS)}")
    if str(digest_of(image.raw_config, image.id)) != image.id:
        raise DataLoss(f"image {image.id}: its configuration is not on record: pull or load it again")
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with translated(f"archive {path}:"), Path(temporary).open("xb") as file:
            _Writer(path, file).image(image, recipes, form)
        with translated(f"archive {path}:"):
            Path(temporary).rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


class _Writer:
    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file

    def image(self, image: ImageRecord, recipes: list[Recipe], form: str) -> None:
        written: dict[str, int] = {}
        for layer, recipe in zip(image.layers, recipes, strict=True):
            if layer.diff_id in written:
                continue
            algorithm, _, value = layer.diff_id.partition(":")
            entry = f"blobs/{algorithm}/{value}" if form == OCI else f"{value}.tar"
            try:
                written[layer.diff_id] = size = recipe.size()
                self._add(entry, size, _verified(recipe, layer.diff_id))
            except (NotFound, DataLoss, Unsupported) as error:
                raise type(error)(f"archive {self._path}: layer {layer.diff_id}: {error}") from error
        if form == OCI:
            self._oci_documents(image, written)
        else:
            self._docker_documents(image)
        self._file.write(bytes(2 * _BLOCK))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _docker_documents(self, image: ImageRecord) -> None:
        config = f"{_value(image.id)}.json"
        layers = [f"{_value(layer.diff_id)}.tar" for layer in image.layers]
        manifest = [{"Config": config, "RepoTags": list(image.repo_tags), "Layers": layers}]
        self._add_bytes(config, image.raw_config)
        self._add_bytes("manifest.json", msgspec.json.encode(manifest))

    def _oci_documents(self, image: ImageRecord, sizes: dict[str, int]) -> None:
        layers = [
            {"mediaType": _OCI_LAYER, "digest": layer.diff_id, "size": sizes[layer.diff_id]} for layer in image.layers
        ]
        config = {"mediaType": _OCI_CONFIG, "digest": image.id, "size": len(image.raw_config)}
        manifest = msgspec.json.encode(
            {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers}
        )
        digest = digest_of(manifest)
        entry = {"mediaType": OCI_MANIFEST, "digest": digest, "size": len(manifest)}
        named = [
            {**entry, "annotations": {"io.containerd.image.name": tag, "org.opencontainers.image.ref.name": tag}}
            for tag in image.repo_tags
        ]
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": named or [entry]}
        self._add_bytes(f"blobs/{image.id.replace(':', '/')}", image.raw_config)
        self._add_bytes(f"blobs/{digest.replace(':', '/')}", manifest)
        self._add_bytes("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        self._add_bytes("index.json", msgspec.json.encode(index))

    def _add_bytes(self, name: str, data: bytes) -> None:
        self._add(name, len(data), [data])

    def _add(self, name: str, size: int, data: Iterable[bytes]) -> None:
        header = tarfile.TarInfo(name)
        header.size = size
        self._file.write(header.tobuf(tarfile.PAX_FORMAT))
        for piece in data:
            self._file.write(piece)
        self._file.write(bytes(-size % _BLOCK))


def _verified(recipe: Recipe, diff_id: str) -> Iterator[bytes]:
    """Ends in an error where the files are not what they were: no archive says what it does not hold."""
    digest = hashlib.new(diff_id.partition(":")[0])
    for piece in recipe.archive():
        digest.update(piece)
        yield piece
    found = f"{digest.name}:{digest.hexdigest()}"
    if found != diff_id:
        raise recipe.lost(f"its files give {found} by now")


def _value(digest: str) -> str:
    return digest.partition(":")[2]
