"""Which images an archive holds: docker's `manifest.json` (docker-archive), or an OCI image layout (oci-archive,
oci-layout; OCI image spec, image-layout.md). Synchronous.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from isulad_py.images.archive import Archive
from isulad_py.images.inflate import HEAD_BYTES, is_compressed
from isulad_py.images.manifest import (
    CONFIG_LIMIT,
    MANIFEST_LIMIT,
    MAX_LAYERS,
    Configuration,
    Descriptor,
    Index,
    Manifest,
    choose_manifests,
    digest_of,
    parse_configuration,
    parse_document,
)
from isulad_py.images.platform import choose
from isulad_py.model.errors import DataLoss, EngineError, InvalidInput, NotFound, ResourceExhausted, Unsupported
from isulad_py.model.ids import Digest
from isulad_py.model.reference import Reference, parse

T = TypeVar("T")
MAX_IMAGES: Final = 1000
INDEX_DEPTH: Final = 3
_NAMES: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


class ArchivedLayer(Struct, frozen=True, kw_only=True):
    entry: str
    digest: Digest
    """Of the entry's bytes."""
    size: int


class ArchivedImage(Struct, frozen=True, kw_only=True):
    raw_config: bytes
    config_digest: Digest
    configuration: Configuration
    layers: tuple[ArchivedLayer, ...]
    names: tuple[Reference, ...] = ()
    manifest_digest: Digest = Digest("")


class _DockerImage(Struct, kw_only=True, rename="pascal"):
    config: str
    layers: list[str] | None = None
    repo_tags: list[str] | None = None


class _Layout(Struct, kw_only=True, rename="camel"):
    image_layout_version: str


def contents(archive: Archive, machine: str) -> list[ArchivedImage]:
    """All images for this machine. Raises DataLoss, Unsupported, ResourceExhausted, or NotFound where there is none;
    each names the archive and the entry."""
    # A docker of today writes both into one archive: the layout says more.
    if archive.has("index.json") and archive.has("oci-layout"):
        found = list(_oci(archive, machine))
    elif archive.has("manifest.json"):
        found = list(_docker(archive))
    else:
        raise DataLoss(f"archive {archive.path}: neither manifest.json nor index.json: no archive of images")
    if not found:
        raise NotFound(f"archive {archive.path}: no image for linux on {machine}")
    return found


def _docker(archive: Archive) -> Iterator[ArchivedImage]:
    images = _decode(archive, "manifest.json", list[_DockerImage])
    _check_count(archive, len(images))
    for image in images:
        raw_config = archive.read(image.config, CONFIG_LIMIT)
        entries = image.layers or []
        configuration = _configuration(archive, image.config, raw_config, len(entries))
        layers = [
            _docker_layer(archive, entry, diff_id)
            for entry, diff_id in zip(entries, configuration.diff_ids, strict=True)
        ]
        yield ArchivedImage(
            raw_config=raw_config,
            config_digest=digest_of(raw_config),
            configuration=configuration,
            layers=tuple(layers),
            names=_references(archive, "manifest.json", image.repo_tags or []),
        )


def _docker_layer(archive: Archive, entry: str, diff_id: Digest) -> ArchivedLayer:
    """Mostly uncompressed; of a compressed one nobody says the digest."""
    size = archive.size(entry)
    digest = diff_id
    if is_compressed(next(archive.chunks(entry), b"")[:HEAD_BYTES]):
        found = hashlib.sha256()
        for chunk in archive.chunks(entry):
            found.update(chunk)
        digest = Digest(f"sha256:{found.hexdigest()}")
    return ArchivedLayer(entry=entry, digest=digest, size=size)


def _oci(archive: Archive, machine: str) -> Iterator[ArchivedImage]:
    version = _decode(archive, "oci-layout", _Layout).image_layout_version
    if version != "1.0.0":
        raise Unsupported(f"archive {archive.path}: oci-layout: version {version[:100]!r}")
    index = _document(archive, "index.json", archive.read("index.json", MANIFEST_LIMIT), "")
    if not isinstance(index, Index):
        raise DataLoss(f"archive {archive.path}: index.json: it is no index")
    _check_count(archive, len(index.manifests))
    missed: NotFound | None = None
    found = 0
    for descriptor in index.manifests:
        told = descriptor.platform is not None and descriptor.platform.architecture
        if told and choose([descriptor.platform], machine) is None:
            continue
        try:
            image = _oci_image(archive, descriptor, machine)
        except NotFound as error:  # an index for other machines, beside others that may be for this one
            missed = error
            continue
        found += 1
        yield image
    if missed is not None and not found:
        raise missed


def _oci_image(archive: Archive, top: Descriptor, machine: str) -> ArchivedImage:
    annotations = top.annotations or {}
    descriptor = top
    for _ in range(INDEX_DEPTH):
        entry, body = _blob(archive, descriptor, MANIFEST_LIMIT)
        document = _document(archive, entry, body, descriptor.media_type)
        if not isinstance(document, Index):
            break
        try:
            descriptor = choose_manifests(document, machine)[0]
        except NotFound as error:
            raise NotFound(f"archive {archive.path}: {entry}: {error}") from error
    else:
        raise DataLoss(f"archive {archive.path}: index.json: more than {INDEX_DEPTH} indexes within each other")
    entry, raw_config = _blob(archive, document.config, CONFIG_LIMIT)
    configuration = _configuration(archive, entry, raw_config, len(document.layers))
    layers = [
        ArchivedLayer(entry=_entry(layer), digest=Digest(layer.digest), size=layer.size) for layer in document.layers
    ]
    for layer in layers:
        if archive.size(layer.entry) != layer.size:
            raise DataLoss(f"archive {archive.path}: {layer.entry}: not of the {layer.size} bytes of its manifest")
    # `ref.name` is often a tag alone, which names nothing by itself.
    names = [name for name in (annotations.get(key, "") for key in _NAMES) if "/" in name or ":" in name]
    return ArchivedImage(
        raw_config=raw_config,
        config_digest=Digest(document.config.digest),
        configuration=configuration,
        layers=tuple(layers),
        names=_references(archive, "index.json", names[:1]),
        manifest_digest=Digest(descriptor.digest),
    )


def _blob(archive: Archive, descriptor: Descriptor, limit: int) -> tuple[str, bytes]:
    entry = _entry(descriptor)
    body = archive.read(entry, limit)
    found = digest_of(body, descriptor.digest)
    if found != descriptor.digest or len(body) != descriptor.size:
        raise DataLoss(f"archive {archive.path}: {entry}: {len(body)} bytes with digest {found}")
    return entry, body


def _entry(descriptor: Descriptor) -> str:
    """Its digest has been checked."""
    algorithm, _, value = descriptor.digest.partition(":")
    return f"blobs/{algorithm}/{value}"


def _document(archive: Archive, entry: str, body: bytes, media_type: str) -> Manifest | Index:
    try:
        return parse_document(body, media_type)
    except EngineError as error:
        raise type(error)(f"archive {archive.path}: {entry}: {error}") from error


def _configuration(archive: Archive, entry: str, body: bytes, layers: int) -> Configuration:
    if layers > MAX_LAYERS:
        raise Unsupported(f"archive {archive.path}: {entry}: {layers} layers; {MAX_LAYERS} can be mounted")
    try:
        return parse_configuration(body, layers)
    except EngineError as error:
        raise type(error)(f"archive {archive.path}: {entry}: {error}") from error


def _references(archive: Archive, entry: str, names: list[str]) -> tuple[Reference, ...]:
    try:
        return tuple(parse(name, field="name") for name in names)
    except InvalidInput as error:
        raise DataLoss(f"archive {archive.path}: {entry}: {error}") from error


def _check_count(archive: Archive, count: int) -> None:
    if count > MAX_IMAGES:
        raise ResourceExhausted(f"archive {archive.path}: {count} images, where {MAX_IMAGES} are the limit")


def _decode(archive: Archive, entry: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(archive.read(entry, MANIFEST_LIMIT), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLoss(f"archive {archive.path}: {entry}: {error}") from error
